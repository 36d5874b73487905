{{- define "roce-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "roce-exporter.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "roce-exporter.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "roce-exporter.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "roce-exporter.selector" -}}
app.kubernetes.io/name: {{ include "roce-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "roce-exporter.labels" -}}
{{ include "roce-exporter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "roce-exporter.image" -}}
{{- $repository := required "image.repository is empty: build deploy/container/Containerfile, push it, and say where" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The alerts select jobs whose name begins with roce. The host is the node, because pod names change. */ -}}
{{- define "roce-exporter.relabelings" -}}
- targetLabel: job
  replacement: {{ .job | default "roce" }}
- sourceLabels: [__meta_kubernetes_pod_node_name]
  targetLabel: instance
{{- with .Values.cluster }}
- targetLabel: cluster
  replacement: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "roce-exporter.probe" -}}
{{- if .Values.webConfigSecret -}}
tcpSocket:
  port: {{ .port | default "metrics" }}
{{- else -}}
httpGet:
  path: {{ .path }}
  port: {{ .port | default "metrics" }}
{{- end }}
{{- end -}}

{{- /* Names of its own: no selector of the hosts' exporters may match the pod that queries switches. The pods of a StatefulSet have a label with its
name and eleven more of the 63 characters of a label. */ -}}
{{- define "roce-exporter.switches.fullname" -}}
{{ include "roce-exporter.fullname" . | trunc 43 | trimSuffix "-" }}-switches
{{- end -}}

{{- define "roce-exporter.switches.selector" -}}
app.kubernetes.io/name: {{ include "roce-exporter.name" . | trunc 54 | trimSuffix "-" }}-switches
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "roce-exporter.switches.labels" -}}
{{ include "roce-exporter.switches.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- /* The image of the hosts has no package of an extra: SONiC and Arista need an image built with their lock file. */ -}}
{{- define "roce-exporter.switches.image" -}}
{{- $image := merge (dict) .Values.switches.image .Values.image -}}
{{- if .Values.switches.image.repository -}}
{{- $image = .Values.switches.image -}}
{{- end -}}
{{- include "roce-exporter.image" (dict "Values" (dict "image" $image) "Chart" .Chart) -}}
{{- end -}}
