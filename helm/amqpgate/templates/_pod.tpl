{{/* The container that is the gateway, alone in its pod or beside an application:
     dict "root" the scope, "ports" what it listens on for others, "probes" the name of that port, "resources". */}}
{{- define "amqpgate.container" -}}
{{- $root := .root -}}
name: amqpgate
image: {{ include "amqpgate.ownImage" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
args: [run, --config, /etc/amqpgate/config/amqpgate.yaml]
{{- if or $root.Values.extraEnv $root.Values.redis.enabled }}
env:
{{- if $root.Values.redis.enabled }}
- name: AMQPGATE_REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.redis.existingSecret }}
      key: {{ $root.Values.redis.existingSecretKey }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- with $root.Values.extraEnvFrom }}
envFrom:
{{ toYaml . }}
{{- end }}
ports:
{{- range .ports }}
- {name: {{ .name }}, containerPort: {{ .port }}, protocol: TCP}
{{- end }}
- {name: {{ .probes }}, containerPort: {{ include "amqpgate.probesPort" $root }}, protocol: TCP}
startupProbe:
  httpGet: {path: /startupz, port: {{ .probes }}}
  {{- toYaml $root.Values.startupProbe | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: {{ .probes }}}
  {{- toYaml $root.Values.readinessProbe | nindent 2 }}
livenessProbe:
  httpGet: {path: /livez, port: {{ .probes }}}
  {{- toYaml $root.Values.livenessProbe | nindent 2 }}
resources:
  {{- toYaml .resources | nindent 2 }}
securityContext:
  {{- toYaml $root.Values.containerSecurityContext | nindent 2 }}
volumeMounts:
- {name: amqpgate-config, mountPath: /etc/amqpgate/config, readOnly: true}
{{- if include "amqpgate.policyMap" $root }}
- {name: amqpgate-policies, mountPath: /etc/amqpgate/policies, readOnly: true}
{{- end }}
{{- range $root.Values.secretMounts }}
- {name: amqpgate-secret-{{ .name }}, mountPath: /etc/amqpgate/secrets/{{ .name }}, readOnly: true}
{{- end }}
{{- if $root.Values.audit.enabled }}
- {name: amqpgate-audit, mountPath: /var/lib/amqpgate/audit}
{{- end }}
{{- with $root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The broker of a gateway to try: in memory, and on the pod's loopback alone. */}}
{{- define "amqpgate.demoBroker" -}}
name: demo-broker
image: {{ include "amqpgate.ownImage" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [broker, --listen, "127.0.0.1:5674"]
resources:
  requests: {cpu: 20m, memory: 64Mi}
  limits: {memory: 256Mi}
securityContext:
  {{- toYaml .Values.containerSecurityContext | nindent 2 }}
{{- end -}}

{{/* Its volumes. The audit volume is the pod's own where a StatefulSet claims it. */}}
{{- define "amqpgate.volumes" -}}
{{- if and (eq .Values.mode "sidecar") .Values.audit.enabled .Values.audit.persistence.enabled (not .Values.audit.existingClaim) -}}
{{- fail "audit.persistence: is the gateway's; name the volume of a sidecar in audit.existingClaim" -}}
{{- end -}}
- name: amqpgate-config
  configMap:
    name: {{ include "amqpgate.fullname" . }}
{{- with include "amqpgate.policyMap" . }}
- name: amqpgate-policies
  configMap:
    name: {{ . }}
{{- end }}
{{- range .Values.secretMounts }}
- name: amqpgate-secret-{{ .name }}
  secret:
    secretName: {{ .secretName }}
    {{- with .items }}
    items:
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- if and .Values.audit.enabled (not (include "amqpgate.claimsForEach" .)) }}
- name: amqpgate-audit
  {{- if .Values.audit.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.audit.existingClaim }}
  {{- else if .Values.audit.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ include "amqpgate.fullname" . }}-audit
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.audit.persistence.size }}
  {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Not empty where each pod of a StatefulSet gets an audit volume of its own. */}}
{{- define "amqpgate.claimsForEach" -}}
{{- if and .Values.audit.enabled .Values.audit.persistence.enabled (not .Values.audit.existingClaim) (eq .Values.workload "StatefulSet") (has "ReadWriteOnce" .Values.audit.persistence.accessModes) -}}
yes
{{- end -}}
{{- end -}}

{{/* A change of the settings is a new pod. Policies are read again by the gateway itself, unless it is told not to watch them. */}}
{{- define "amqpgate.checksums" -}}
checksum/config: {{ include "amqpgate.settings" . | sha256sum }}
{{- if and .Values.policies (eq (toString (default (dict) .Values.config).watchPolicies) "false") }}
checksum/policies: {{ toYaml .Values.policies | sha256sum }}
{{- end }}
{{- end -}}

{{/* What all pods of the chart have in common: dict "root", and "values" where scheduling is found. */}}
{{- define "amqpgate.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A volume claim's spec, of values with size, storageClass and accessModes. */}}
{{- define "amqpgate.claim" -}}
accessModes: {{ toJson .accessModes }}
{{- with .storageClass }}
storageClassName: {{ ternary "" . (eq . "-") | quote }}
{{- end }}
resources:
  requests:
    storage: {{ .size }}
{{- end -}}

{{/* The wait before a stop, for the others of the cluster to learn that connections go elsewhere now. */}}
{{- define "amqpgate.drainDelay" -}}
{{- if .Values.drainDelaySeconds -}}
lifecycle:
  preStop:
  {{- if semverCompare ">=1.30-0" (include "amqpgate.kubeVersion" .) }}
    sleep:
      seconds: {{ .Values.drainDelaySeconds }}
  {{- else }}
    exec:
      command: [python, -c, "import time; time.sleep({{ .Values.drainDelaySeconds }})"]
  {{- end }}
{{- end }}
{{- end -}}
