{{/* Fails with what the schema cannot see, all at once: names of upstreams that there are not, ports that are taken twice,
     policies from two places, routes that have no Service or one name. */}}
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
{{- $problems = concat $problems (include "amqpgate.checks.ports" . | fromJsonArray) (include "amqpgate.checks.routes" . | fromJsonArray) -}}
{{- if and $settings.policies (ne $settings.policies "/etc/amqpgate/policies") (or .Values.policies .Values.existingPolicies) -}}
{{- $problems = append $problems "config.policies: is another folder than the one with policies and existingPolicies; say either" -}}
{{- end -}}
{{- if $problems }}{{ fail (join "\n" $problems) }}{{ end -}}
{{- end -}}

{{/* What is wrong with ports, as a list of JSON. The API server takes no Service that has one twice. */}}
{{- define "amqpgate.checks.ports" -}}
{{- $settings := include "amqpgate.settings" . | fromYaml -}}
{{- $problems := list -}}
{{- $binds := list -}}
{{- range $index, $listener := $settings.listeners -}}
{{- $binds = append $binds (dict "where" (printf "config.listeners[%d].bind" $index) "bind" (toString $listener.bind)) -}}
{{- end -}}
{{- range $key := list "probes" "bind" -}}
{{- with get $settings.admin $key }}{{ $binds = append $binds (dict "where" (printf "config.admin.%s" $key) "bind" (toString .)) }}{{ end -}}
{{- end -}}
{{- $taken := dict -}}
{{- range $binds -}}
{{- $port := regexFind "[0-9]+$" .bind -}}
{{- if and $port (ne $port "0") (not (contains "${" .bind)) -}}
{{- $key := ternary .bind $port (not (not (include "amqpgate.isLoopback" .bind))) -}}
{{- $first := get $taken $key -}}
{{- if $first -}}
{{- $problems = append $problems (printf "%s: port %s is taken by %s" .where $port $first) -}}
{{- end -}}
{{- $_ := set $taken $key (default .where $first) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.mode "gateway" -}}
{{- $names := dict -}}
{{- range (include "amqpgate.ports" . | fromYaml).ports -}}
{{- $port := get $.Values.service.ports .name | default .port | toString -}}
{{- $first := get $names $port -}}
{{- if and $first (or (hasKey $.Values.service.ports .name) (hasKey $.Values.service.ports $first)) -}}
{{- $problems = append $problems (printf "service.ports: %s is the port of %s and of %s" $port $first .name) -}}
{{- end -}}
{{- $_ := set $names $port (default .name $first) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{/* And with routes of the Gateway API. Each is called after its port. */}}
{{- define "amqpgate.checks.routes" -}}
{{- $problems := list -}}
{{- $ports := dict -}}
{{- range $index, $route := .Values.tcpRoutes -}}
{{- if hasKey $ports $route.port -}}
{{- $problems = append $problems (printf "tcpRoutes[%d]: port %s has a route already; put both Gateways into the parentRefs of tcpRoutes[%v]" $index $route.port (get $ports $route.port)) -}}
{{- else -}}
{{- $_ := set $ports $route.port $index -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
