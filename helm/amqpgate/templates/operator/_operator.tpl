{{/* The operator's settings: what `customResources.config` says, and what the chart knows. */}}
{{- define "amqpgate.operator.settings" -}}
{{- $settings := deepCopy .Values.customResources.config -}}
{{- $gateway := include "amqpgate.settings" . | fromYaml -}}
{{- $name := include "amqpgate.fullname" . -}}
{{- $_ := set $settings "configMap" (include "amqpgate.policyMap" .) -}}
{{- $_ := set $settings "lease" (printf "%s-operator" $name) -}}
{{- $_ := set $settings "owner" (dict "kind" .Values.workload "name" $name) -}}
{{- $_ := set $settings "tenants" .Values.customResources.tenants -}}
{{- $_ := set $settings "bind" "0.0.0.0:15681" -}}
{{- $facts := default (dict) $settings.gateway -}}
{{- if not $facts.upstreams -}}
{{- $names := list -}}
{{- range $gateway.upstreams }}{{ $names = append $names .name }}{{ end -}}
{{- $_ := set $facts "upstreams" $names -}}
{{- end -}}
{{- if not (hasKey $facts "sharedLimits") }}{{ $_ := set $facts "sharedLimits" (not (not $gateway.sharedLimits)) }}{{ end -}}
{{- if not (hasKey $facts "claimChecks") }}{{ $_ := set $facts "claimChecks" false }}{{ end -}}
{{- $_ := set $settings "gateway" $facts -}}
{{- if .Values.customResources.webhook.enabled -}}
{{- $tls := dict "cert" "/etc/amqpgate/tls/tls.crt" "key" "/etc/amqpgate/tls/tls.key" -}}
{{- $_ := set $settings "webhook" (dict "bind" "0.0.0.0:8443" "tls" $tls) -}}
{{- end -}}
{{- if not $settings.log -}}
{{- $_ := set $settings "log" (dict "format" "json") -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* Not empty where policies are custom resources. */}}
{{- define "amqpgate.operator" -}}
{{- if and .Values.customResources.enabled (eq .Values.mode "gateway") -}}
{{- if or .Values.policies .Values.existingPolicies (default (dict) .Values.config).policies -}}
{{- fail "customResources.enabled: policies are resources then; leave policies, existingPolicies and config.policies empty" -}}
{{- end -}}
{{- if include "amqpgate.demo" . -}}
{{- fail "customResources.enabled: say config.upstreams; a gateway to try has a policy of its own" -}}
{{- end -}}
yes
{{- end -}}
{{- end -}}

{{/* The plurals of the kinds, as the files of the definitions are called. */}}
{{- define "amqpgate.operator.plurals" -}}
{{- $plurals := list -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}{{ $plurals = append $plurals (trimSuffix ".yaml" (base $path)) }}{{ end -}}
{{- toJson $plurals -}}
{{- end -}}

{{- define "amqpgate.operator.secret" -}}
{{- with .Values.customResources.webhook -}}
{{- if .certManager.enabled -}}
{{- include "amqpgate.fullname" $ }}-operator-tls
{{- else -}}
{{- required "customResources.webhook.existingSecret: name a Secret of type kubernetes.io/tls, or set customResources.webhook.certManager.enabled" .existingSecret -}}
{{- end -}}
{{- end -}}
{{- end -}}
