{{/*
The certificate of a webhook behind the Service `name`, in the Secret `secret`, by cert-manager where `certManager` says so.
Of `root`, `component`, and `suffix` for the names of objects.
*/}}
{{- define "amqpgate.certificate" -}}
{{- if .certManager.enabled }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  {{- include "amqpgate.metadata" (dict "root" .root "component" .component "suffix" .suffix) | nindent 2 }}
spec:
  secretName: {{ .secret }}
  duration: {{ .certManager.duration }}
  privateKey:
    algorithm: ECDSA
    size: 256
    rotationPolicy: Always
  usages: [digital signature, server auth]
  dnsNames:
  - {{ .name }}.{{ .root.Release.Namespace }}.svc
  - {{ .name }}.{{ .root.Release.Namespace }}.svc.cluster.local
  issuerRef:
    {{- if .certManager.issuerRef }}
    {{- toYaml .certManager.issuerRef | nindent 4 }}
    {{- else }}
    group: cert-manager.io
    kind: Issuer
    name: {{ .name }}
    {{- end }}
{{- if not .certManager.issuerRef }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  {{- include "amqpgate.metadata" (dict "root" .root "component" .component "suffix" .suffix) | nindent 2 }}
spec:
  selfSigned: {}
{{- end }}
{{- end }}
{{- end -}}
