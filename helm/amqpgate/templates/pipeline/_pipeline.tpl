{{/* The claim of the volume that gateways write records to; empty where they are in an object store. */}}
{{- define "amqpgate.pipeline.records" -}}
{{- if .Values.pipeline.records.existingClaim -}}
{{- .Values.pipeline.records.existingClaim -}}
{{- else if .Values.audit.enabled -}}
{{- if .Values.audit.existingClaim -}}
{{- .Values.audit.existingClaim -}}
{{- else if .Values.audit.persistence.enabled -}}
{{- if include "amqpgate.claimsForEach" . }}{{ fail "pipeline: each gateway has a volume of its own; let them share one (audit.persistence.accessModes: [ReadWriteMany]), or send the files to an object store" }}{{ end -}}
{{- include "amqpgate.fullname" . }}-audit
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "amqpgate.pipeline.table" -}}
{{- if .Values.pipeline.table.existingClaim -}}
{{- .Values.pipeline.table.existingClaim -}}
{{- else if .Values.pipeline.table.persistence.enabled -}}
{{- include "amqpgate.fullname" . }}-table
{{- end -}}
{{- end -}}

{{- define "amqpgate.pipeline.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.pipeline.tmpSize }}
{{- with include "amqpgate.pipeline.records" . }}
- name: records
  persistentVolumeClaim:
    claimName: {{ . }}
{{- end }}
{{- with include "amqpgate.pipeline.table" . }}
- name: table
  persistentVolumeClaim:
    claimName: {{ . }}
{{- end }}
{{- with .Values.pipeline.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "amqpgate.pipeline.volumeMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if include "amqpgate.pipeline.records" . }}
- {name: records, mountPath: /var/lib/amqpgate/audit, readOnly: true}
{{- end }}
{{- if include "amqpgate.pipeline.table" . }}
- {name: table, mountPath: /srv/audit}
{{- end }}
{{- with .Values.pipeline.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What is run by the operator, once or by a schedule. Its image is one of Spark's own, with amqpgate in it. */}}
{{- define "amqpgate.pipeline.application" -}}
{{- $spark := .Values.pipeline.spark -}}
type: Python
mode: cluster
image: {{ include "amqpgate.image" (dict "image" .Values.pipeline.image "tag" (printf "%s-pipeline" .Chart.AppVersion)) }}
imagePullPolicy: {{ .Values.pipeline.image.pullPolicy }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- {{ .name }}
{{- end }}
{{- end }}
sparkVersion: {{ $spark.version | quote }}
mainApplicationFile: {{ $spark.mainApplicationFile }}
arguments:
{{- range .Values.pipeline.args }}
- {{ toString . | quote }}
{{- end }}
{{- with $spark.sparkConf }}
sparkConf:
  {{- range $key, $value := . }}
  {{ $key }}: {{ toString $value | quote }}
  {{- end }}
{{- end }}
{{- with $spark.hadoopConf }}
hadoopConf:
  {{- range $key, $value := . }}
  {{ $key }}: {{ toString $value | quote }}
  {{- end }}
{{- end }}
restartPolicy:
  {{- toYaml $spark.restartPolicy | nindent 2 }}
{{- with $spark.timeToLiveSeconds }}
timeToLiveSeconds: {{ int64 . }}
{{- end }}
volumes:
{{ include "amqpgate.pipeline.volumes" . }}
driver:
  cores: {{ $spark.driver.cores }}
  memory: {{ $spark.driver.memory }}
  serviceAccount: {{ default (include "amqpgate.fullname" . | printf "%s-spark") $spark.serviceAccountName }}
  {{- include "amqpgate.pipeline.pod" . | nindent 2 }}
executor:
  instances: {{ $spark.executor.instances }}
  cores: {{ $spark.executor.cores }}
  memory: {{ $spark.executor.memory }}
  {{- include "amqpgate.pipeline.pod" . | nindent 2 }}
{{- end -}}

{{/* What driver and executors have in common. */}}
{{- define "amqpgate.pipeline.pod" -}}
labels:
  {{- merge (include "amqpgate.labels" (dict "root" . "component" "pipeline") | fromYaml) .Values.podLabels | toYaml | nindent 2 }}
{{- with merge (dict) .Values.podAnnotations .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pipeline.extraEnv }}
env:
{{ toYaml . }}
{{- end }}
{{- with .Values.pipeline.extraEnvFrom }}
envFrom:
{{ toYaml . }}
{{- end }}
{{- with .Values.pipeline.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pipeline.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .Values.pipeline.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
podSecurityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
securityContext:
  {{- toYaml .Values.containerSecurityContext | nindent 2 }}
volumeMounts:
{{ include "amqpgate.pipeline.volumeMounts" . }}
{{- end -}}
