{{/* Not empty where nothing is said of a gateway: one to try, before a broker of its own. */}}
{{- define "amqpgate.demo" -}}
{{- if and (eq .Values.mode "gateway") (not .Values.config) -}}
yes
{{- end -}}
{{- end -}}

{{/* Its policies, by file name, where none are said. */}}
{{- define "amqpgate.demoPolicies" -}}
demo.yaml:
  apiVersion: amqpgate.io/v1alpha1
  kind: AccessPolicy
  metadata: {name: demo}
  spec:
    subjects: [{user: "*"}]
    onDeny: {disclose: rule-id}
    rules:
    - {id: all, effect: allow, operations: ["*"]}
    - {id: no-secrets, effect: deny, operations: [basic.publish], routingKey: {literal: secret}}
{{- end -}}

{{/* The ConfigMap with its policies; empty where there are none. */}}
{{- define "amqpgate.policyMap" -}}
{{- $name := include "amqpgate.fullname" . -}}
{{- if include "amqpgate.operator" . -}}
{{- $name }}-resources
{{- else if or .Values.policies .Values.existingPolicies (include "amqpgate.demo" .) -}}
{{- default (printf "%s-policies" $name) .Values.existingPolicies -}}
{{- end -}}
{{- end -}}

{{/* The gateway's settings: what `config` says, and what the chart knows where it says nothing. */}}
{{- define "amqpgate.settings" -}}
{{- $settings := deepCopy (default (dict) .Values.config) -}}
{{- if include "amqpgate.demo" . -}}
{{- $_ := set $settings "upstreams" (list (dict "name" "demo" "host" "127.0.0.1" "port" 5674)) -}}
{{- end -}}
{{- if not $settings.listeners -}}
{{- $host := ternary "127.0.0.1" "0.0.0.0" (eq .Values.mode "sidecar") -}}
{{- $_ := set $settings "listeners" (list (dict "name" "clients" "bind" (printf "%s:5672" $host))) -}}
{{- end -}}
{{- $admin := default (dict) $settings.admin -}}
{{- if not $admin.probes -}}
{{- $_ := set $admin "probes" "0.0.0.0:15681" -}}
{{- end -}}
{{- $_ := set $settings "admin" $admin -}}
{{- if and (not $settings.policies) (include "amqpgate.policyMap" .) -}}
{{- $_ := set $settings "policies" "/etc/amqpgate/policies" -}}
{{- end -}}
{{- /* Until the first resource is there, and where the last one goes, nobody may do anything. */ -}}
{{- if and (include "amqpgate.operator" .) (not $settings.defaultAccess) -}}
{{- $_ := set $settings "defaultAccess" "deny" -}}
{{- end -}}
{{- with $settings.sharedLimits -}}
{{- if not (or $.Values.redis.enabled (and .redis .replicas)) }}{{ fail "config.sharedLimits: say redis and replicas, or set redis.enabled" }}{{ end -}}
{{- end -}}
{{- if .Values.redis.enabled -}}
{{- $_ := set $settings "sharedLimits" (merge (dict) (default (dict) $settings.sharedLimits) (include "amqpgate.sharedLimits" . | fromYaml)) -}}
{{- end -}}
{{- if and .Values.audit.enabled (not $settings.audit) -}}
{{- $_ := set $settings "audit" (dict "format" "parquet" "folder" "/var/lib/amqpgate/audit") -}}
{{- end -}}
{{- if not $settings.log -}}
{{- $_ := set $settings "log" (dict "format" "json") -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- define "amqpgate.sharedLimits" -}}
redis: redis://{{ include "amqpgate.fullname" . }}-redis.{{ .Release.Namespace }}.svc:6379/0
replicas: {{ mul (include "amqpgate.mostReplicas" .) (default 1 (default (dict) .Values.config).workers) }}
password: ${AMQPGATE_REDIS_PASSWORD}
{{- end -}}

{{- define "amqpgate.mostReplicas" -}}
{{- if include "amqpgate.demo" . }}1{{ else }}{{ ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled }}{{ end -}}
{{- end -}}

{{/* Whole seconds, rounded up, of a time as the gateway writes it: 25, "500ms", "1m30s". */}}
{{- define "amqpgate.seconds" -}}
{{- $text := toString . -}}
{{- $sum := 0.0 -}}
{{- if regexMatch "^[0-9.]+$" $text -}}
{{- $sum = float64 $text -}}
{{- else -}}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" $text -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get $units $unit)) -}}
{{- end -}}
{{- end -}}
{{- ceil $sum | int -}}
{{- end -}}

{{/* Time for a stop: the wait before it, the drain, which includes its closes unless they take longer, and what is
     written last.
     dict "root" the scope, "before" seconds of the wait, "name" what they are called. */}}
{{- define "amqpgate.gracePeriod" -}}
{{- $limits := default (dict) (default (dict) .root.Values.config).limits -}}
{{- $given := .root.Values.terminationGracePeriodSeconds -}}
{{- $drain := default 25 $limits.drainTimeout -}}
{{- if hasKey $limits "drainTimeout" }}{{ $drain = $limits.drainTimeout }}{{ end -}}
{{- $close := default 5 $limits.closeTimeout -}}
{{- if contains "${" (printf "%v%v" $drain $close) -}}
{{- if not $given }}{{ fail "terminationGracePeriodSeconds: say it, since config.limits has times that only the environment knows" }}{{ end -}}
{{- $given -}}
{{- else -}}
{{- $needed := add .before (max (include "amqpgate.seconds" $drain) (include "amqpgate.seconds" $close)) 10 -}}
{{- if not $given -}}
{{- $needed -}}
{{- else if lt (int64 $given) $needed -}}
{{- fail (printf "terminationGracePeriodSeconds: %v is too short: %s, config.limits.drainTimeout and 10 s to write what is left are %d" $given .name $needed) -}}
{{- else -}}
{{- $given -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Not empty for an address that no other pod can reach. */}}
{{- define "amqpgate.isLoopback" -}}
{{- $host := regexReplaceAll ":[0-9]+$" . "" -}}
{{- if or (hasPrefix "127." $host) (has $host (list "localhost" "[::1]")) -}}
yes
{{- end -}}
{{- end -}}

{{/* The listeners that other pods can reach, as {"ports": [{name, port}]}. */}}
{{- define "amqpgate.ports" -}}
{{- $ports := list -}}
{{- $count := dict -}}
{{- range $listener := (include "amqpgate.settings" . | fromYaml).listeners -}}
{{- if contains "${" $listener.bind -}}
{{- fail (printf "config.listeners: the address of '%s' must be written out, so that the Service can have its port" $listener.name) -}}
{{- end -}}
{{- if not (include "amqpgate.isLoopback" $listener.bind) -}}
{{- $name := ternary "amqps" "amqp" (not (not $listener.tls)) -}}
{{- $taken := get $count $name | default 0 -}}
{{- $_ := set $count $name (add1 $taken) -}}
{{- if $taken }}{{ $name = printf "%s-%d" $name $taken }}{{ end -}}
{{- $ports = append $ports (dict "name" $name "port" (regexFind "[0-9]+$" $listener.bind | int)) -}}
{{- end -}}
{{- end -}}
{{- if not $ports }}{{ fail "config.listeners: no other pod can reach any of them; bind one to 0.0.0.0" }}{{ end -}}
{{- dict "ports" $ports | toYaml -}}
{{- end -}}

{{- define "amqpgate.probesPort" -}}
{{- regexFind "[0-9]+$" (include "amqpgate.settings" . | fromYaml).admin.probes -}}
{{- end -}}

{{/* Where settings have a password as text, a line each: dict "value" them, "at" what they are called. */}}
{{- define "amqpgate.clear" -}}
{{- $at := .at -}}
{{- if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- $inner := printf "%s.%s" $at $key -}}
{{- if not (kindIs "string" $value) -}}
{{- include "amqpgate.clear" (dict "value" $value "at" $inner) -}}
{{- else if not (contains "${" $value) -}}
{{- if or (eq $key "password") (regexMatch "://[^/@]*:[^@]+@" $value) }}
{{ $inner }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $value := .value -}}
{{- include "amqpgate.clear" (dict "value" $value "at" (printf "%s[%d]" $at $index)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
