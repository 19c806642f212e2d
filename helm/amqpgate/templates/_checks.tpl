{{/* Fails with what the schema cannot see: names of upstreams, of listeners and routes, that there are not. All at once. */}}
{{- define "amqpgate.checks" -}}
{{- $settings := include "amqpgate.settings" . | fromYaml -}}
{{- $names := list -}}
{{- range $settings.upstreams }}{{ $names = append $names (toString .name) }}{{ end -}}
{{- $asked := list -}}
{{- $problems := list -}}
{{- range $index, $listener := $settings.listeners -}}
{{- if $listener.upstream -}}
{{- $asked = append $asked (dict "where" (printf "config.listeners[%d].upstream" $index) "name" $listener.upstream) -}}
{{- else if gt (len $names) 1 -}}
{{- $problems = append $problems (printf "config.listeners[%d]: say which upstream: there are %s" $index (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- range $file, $document := ternary (dict) .Values.policies (not (not .Values.existingPolicies)) -}}
{{- if and (kindIs "map" $document) (eq $document.kind "RoutePolicy") (ne (toString $document.spec.mode) "off") -}}
{{- range $index, $route := $document.spec.routes -}}
{{- $where := printf "policies.%s: spec.routes[%d].upstream" $file $index -}}
{{- with $route.upstream.cluster }}{{ $asked = append $asked (dict "where" (printf "%s.cluster" $where) "name" .) }}{{ end -}}
{{- range $place, $share := $route.upstream.clusters -}}
{{- $asked = append $asked (dict "where" (printf "%s.clusters[%d].cluster" $where $place) "name" $share.cluster) -}}
{{- end -}}
{{- with $route.upstream.mirror }}{{ $asked = append $asked (dict "where" (printf "%s.mirror.cluster" $where) "name" .cluster) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (contains "${" (join "" $names)) -}}
{{- range $asked -}}
{{- $name := toString .name -}}
{{- if not (or (has $name $names) (contains "${" $name)) -}}
{{- $near := "" -}}
{{- range $names }}{{ if and (not $near) (hasPrefix (trunc 3 $name | lower) (lower .)) }}{{ $near = printf " (did you mean '%s'?)" . }}{{ end }}{{ end -}}
{{- $problems = append $problems (printf "%s: no upstream is named '%s'%s; config.upstreams has %s" .where $name $near (join ", " $names)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $problems }}{{ fail (join "\n" $problems) }}{{ end -}}
{{- end -}}
