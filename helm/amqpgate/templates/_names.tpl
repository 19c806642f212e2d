{{/* Names and labels. Forty letters leave room for the suffixes of a CronJob, whose names are the shortest. */}}
{{- define "amqpgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "amqpgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What selectors go by: dict "root" the scope, "component" the part. It never changes in the life of a release. */}}
{{- define "amqpgate.selector" -}}
app.kubernetes.io/name: {{ include "amqpgate.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "amqpgate.labels" -}}
{{- $fixed := include "amqpgate.selector" . | fromYaml -}}
{{- $_ := set $fixed "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $fixed "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $fixed "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $fixed .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* metadata of an object: dict "root", "component", and "suffix", "annotations", "labels" where there are any. */}}
{{- define "amqpgate.metadata" -}}
name: {{ include "amqpgate.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- merge (include "amqpgate.labels" . | fromYaml) (.labels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* An image's name: dict "image" its values, "tag" what holds where they name none. A digest says more than a tag. */}}
{{- define "amqpgate.image" -}}
{{- with .image.registry }}{{ . }}/{{ end -}}
{{- .image.repository -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ default .tag .image.tag }}{{ end -}}
{{- end -}}

{{/* The gateway's own. Parquet files take the image with pyarrow. */}}
{{- define "amqpgate.ownImage" -}}
{{- include "amqpgate.image" (dict "image" .Values.image "tag" (printf "%s%s" .Chart.AppVersion (ternary "-audit" "" .Values.audit.enabled))) -}}
{{- end -}}

{{- define "amqpgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "amqpgate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The cluster's version, unless the values know better. */}}
{{- define "amqpgate.kubeVersion" -}}
{{- default .Capabilities.KubeVersion.Version .Values.kubeVersion -}}
{{- end -}}
