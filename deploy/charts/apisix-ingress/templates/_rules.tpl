{{- /* Permissions on objects in namespaces; docs/architecture.md has the same as a table. */ -}}
{{- define "apisix-ingress.rules" -}}
{{- $kubernetes := .Values.config.kubernetes -}}
{{- $status := .Values.config.status.enabled -}}
- apiGroups: [""]
  resources:
    - services
    - pods
    {{- if not .Values.rbac.secrets }}
    - secrets
    {{- end }}
    {{- if .Values.config.ingressNginx.enabled }}
    - configmaps
    {{- end }}
    {{- if eq $kubernetes.endpointSource "endpoints" }}
    - endpoints
    {{- end }}
  verbs: [list, watch]
{{- if eq $kubernetes.endpointSource "endpointslices" }}
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
{{- end }}
{{- $gatewayAPI := ne (toString .Values.config.gatewayAPI.enabled) "false" }}
{{- if or $gatewayAPI (eq (include "apisix-ingress.isolation" . | fromJson).crossNamespace "grant") }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
{{- end }}
{{- if $gatewayAPI }}
# CA certificates of clients; read only if the CRDs of the Gateway API are installed.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources:
    {{- include "apisix-ingress.gatewayResources" . | nindent 4 }}
  verbs: [list, watch{{ if $status }}, get{{ end }}]
{{- if $status }}
- apiGroups: [gateway.networking.k8s.io]
  resources:
    {{- range include "apisix-ingress.gatewayResources" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: [patch]
{{- end }}
# Kinds of 2.x; read only if their CRDs are installed.
- apiGroups: [apisix.apache.org]
  resources:
    {{- include "apisix-ingress.extensionParameters" . | nindent 4 }}
  verbs: [list, watch]
- apiGroups: [apisix.apache.org]
  resources:
    {{- include "apisix-ingress.extensionResources" . | nindent 4 }}
  verbs: [list, watch{{ if $status }}, get{{ end }}]
{{- if $status }}
- apiGroups: [apisix.apache.org]
  resources:
    {{- range include "apisix-ingress.extensionResources" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: [patch]
{{- end }}
{{- end }}
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [list, watch{{ if include "apisix-ingress.publishes" . }}, get{{ end }}]
{{- if include "apisix-ingress.publishes" . }}
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [patch]
{{- end }}
- apiGroups: [apisix.apache.org]
  resources:
    {{- include "apisix-ingress.customResources" . | nindent 4 }}
  verbs: [list, watch{{ if $status }}, get{{ end }}]
{{- if $status }}
- apiGroups: [apisix.apache.org]
  resources:
    {{- range include "apisix-ingress.customResources" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: [patch]
{{- end }}
{{- end -}}

{{- /* Whether Events are read as well, which is needed in watched namespaces only. */ -}}
{{- define "apisix-ingress.eventRules" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [create, {{ if . }}list, {{ end }}patch]
{{- end -}}

{{- /* Permissions on cluster-scoped objects. */ -}}
{{- define "apisix-ingress.clusterRules" -}}
{{- $status := .Values.config.status.enabled -}}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingressclasses]
  verbs: [list, watch]
{{- if ne (toString .Values.config.gatewayAPI.enabled) "false" }}
- apiGroups: [gateway.networking.k8s.io]
  resources:
    {{- include "apisix-ingress.clusterGatewayResources" . | nindent 4 }}
  verbs: [list, watch{{ if $status }}, get{{ end }}]
{{- if $status }}
- apiGroups: [gateway.networking.k8s.io]
  resources:
    {{- range include "apisix-ingress.clusterGatewayResources" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: [patch]
{{- end }}
{{- end }}
- apiGroups: [apisix.apache.org]
  resources:
    {{- include "apisix-ingress.clusterCustomResources" . | nindent 4 }}
  verbs: [list, watch{{ if $status }}, get{{ end }}]
{{- if $status }}
- apiGroups: [apisix.apache.org]
  resources:
    {{- range include "apisix-ingress.clusterCustomResources" . | fromYamlArray }}
    - {{ . }}/status
    {{- end }}
  verbs: [patch]
{{- end }}
{{- end -}}

{{- /* Permissions in the namespace of the controller: the lease, and the ledger of records without labels. */ -}}
{{- define "apisix-ingress.ownRules" -}}
{{- $election := .Values.config.leaderElection -}}
# A rule for create cannot name the object.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ .Values.config.recordOwner }}-ledger]
  verbs: [get, update]
{{- if not $election.disable }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ $election.id }}]
  verbs: [get, update, patch]
{{- end }}
{{- end -}}
