{{/* The labels of the pods of a tier: call it with the root and the tier. */}}
{{- define "visitors.selector" -}}
{{- $root := index . 0 -}}
app: {{ $root.Chart.Name }}
release: {{ $root.Release.Name }}
tier: {{ index . 1 }}
{{- end -}}

{{/* The Deployment's head, up to its container: call it with the root, the tier and the number of pods. */}}
{{- define "visitors.deployment" -}}
{{- $root := index . 0 -}}
{{- $tier := index . 1 -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $root.Release.Name }}-{{ $tier }}
spec:
  replicas: {{ index . 2 }}
  selector:
    matchLabels:
      {{- include "visitors.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "visitors.selector" . | nindent 8 }}
    spec:
      containers:
        - name: visitors-{{ $tier }}
{{- end -}}

{{/* A variable with a value of the Secret: call it with the root, the variable and the key. */}}
{{- define "visitors.secret" -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef:
      name: {{ (index . 0).Release.Name }}-mysql-auth
      key: {{ index . 2 }}
{{- end -}}
