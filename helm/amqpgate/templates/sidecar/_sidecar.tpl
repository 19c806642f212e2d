{{/* For charts of applications, which have this one as a dependency with `mode: sidecar`. Each takes the scope of
     this chart, which is .Subcharts.amqpgate there. The chart helm/application is an example to copy from. */}}

{{/* Not empty where the kubelet knows sidecars: they start before the application and stop after it. */}}
{{- define "amqpgate.sidecar.isNative" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- if or (eq .Values.sidecar.native "always") (and (eq .Values.sidecar.native "auto") (semverCompare ">=1.29-0" (include "amqpgate.kubeVersion" .))) -}}
yes
{{- end -}}
{{- else -}}
{{- fail "mode: sidecar is what an application's chart includes amqpgate with" -}}
{{- end -}}
{{- end -}}

{{- define "amqpgate.sidecar.initContainers" -}}
{{- if include "amqpgate.sidecar.isNative" . -}}
- {{ include "amqpgate.container" (dict "root" . "ports" list "probes" "amqpgate-probes") | nindent 2 | trim }}
  restartPolicy: Always
{{- end -}}
{{- end -}}

{{- define "amqpgate.sidecar.containers" -}}
{{- if not (include "amqpgate.sidecar.isNative" .) -}}
- {{ include "amqpgate.container" (dict "root" . "ports" list "probes" "amqpgate-probes") | nindent 2 | trim }}
  {{- include "amqpgate.sidecar.wait" . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Without native sidecars all containers are told to stop at once: this one waits for the application's last words. */}}
{{- define "amqpgate.sidecar.wait" -}}
lifecycle:
  preStop:
    exec:
      command: [python, -c, "import time; time.sleep({{ .Values.sidecar.applicationSeconds }})"]
{{- end -}}

{{- define "amqpgate.sidecar.volumes" -}}
{{- include "amqpgate.volumes" . -}}
{{- end -}}

{{/* A change of the settings is a new pod of the application. */}}
{{- define "amqpgate.sidecar.annotations" -}}
{{- $annotations := dict -}}
{{- range $name, $sum := include "amqpgate.checksums" . | fromYaml -}}
{{- $_ := set $annotations (printf "checksum/amqpgate-%s" (trimPrefix "checksum/" $name)) $sum -}}
{{- end -}}
{{- toYaml $annotations -}}
{{- end -}}

{{/* terminationGracePeriodSeconds of the pod: the application's time to stop, and then the sidecar's. */}}
{{- define "amqpgate.sidecar.gracePeriod" -}}
{{- include "amqpgate.gracePeriod" (dict "root" . "before" .Values.sidecar.applicationSeconds "name" "sidecar.applicationSeconds") -}}
{{- end -}}
