{{- define "tomcat.name" -}}
{{- default .Chart.Name .Values.nameOverride -}}
{{- end -}}

{{/* The name of what a release consists of: the release's, with tomcat.name if that is not in there. */}}
{{- define "tomcat.fullname" -}}
{{- if contains (include "tomcat.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tomcat.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tomcat.selector" -}}
app: {{ include "tomcat.name" . }}
release: {{ .Release.Name }}
{{- end -}}

{{- define "tomcat.labels" -}}
{{ include "tomcat.selector" . }}
chart: {{ .Chart.Name }}-{{ .Chart.Version }}
heritage: {{ .Release.Service }}
{{- end -}}
