{{/* The injector's settings: what `injector.config` says, and what the chart knows where it says nothing. */}}
{{- define "amqpgate.injector.settings" -}}
{{- $settings := deepCopy .Values.injector.config -}}
{{- if not $settings.image -}}
{{- $_ := set $settings "image" (include "amqpgate.image" (dict "image" .Values.image "tag" .Chart.AppVersion)) -}}
{{- $_ := set $settings "imagePullPolicy" (default .Values.image.pullPolicy $settings.imagePullPolicy) -}}
{{- end -}}
{{- if not $settings.sidecar -}}
{{- $_ := set $settings "sidecar" (ternary "native" "classic" (semverCompare ">=1.29-0" (include "amqpgate.kubeVersion" .))) -}}
{{- end -}}
{{- if not $settings.resources -}}
{{- $_ := set $settings "resources" .Values.resources -}}
{{- end -}}
{{- $_ := set $settings "onError" (ternary "open" "closed" (eq .Values.injector.failurePolicy "Ignore")) -}}
{{- $_ := set $settings "bind" "0.0.0.0:8443" -}}
{{- $tls := merge (dict "cert" "/etc/amqpgate/tls/tls.crt" "key" "/etc/amqpgate/tls/tls.key") (default (dict) $settings.tls) -}}
{{- $_ := set $settings "tls" $tls -}}
{{- if not $settings.log -}}
{{- $_ := set $settings "log" (dict "format" "json") -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- define "amqpgate.injector.secret" -}}
{{- if .Values.injector.certManager.enabled -}}
{{- include "amqpgate.fullname" . }}-tls
{{- else -}}
{{- required "injector.existingSecret: name a Secret of type kubernetes.io/tls for the webhook, or set injector.certManager.enabled" .Values.injector.existingSecret -}}
{{- end -}}
{{- end -}}
