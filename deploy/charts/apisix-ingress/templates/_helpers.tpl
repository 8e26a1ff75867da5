{{- define "apisix-ingress.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" -}}
{{- end -}}

{{- /* At most 48 characters: the names of all objects begin with it. */ -}}
{{- define "apisix-ingress.fullname" -}}
{{- $name := include "apisix-ingress.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.selectorLabels" -}}
{{- if .Values.labelsOverride -}}
{{- tpl (toYaml .Values.labelsOverride) . -}}
{{- else -}}
app.kubernetes.io/name: {{ include "apisix-ingress.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "apisix-ingress.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* Labels of the gateway and of its etcd, given as (list . component); those of the controller must not select them. */ -}}
{{- define "apisix-ingress.gatewaySelector" -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
{{- end -}}

{{- define "apisix-ingress.gatewayLabels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{ include "apisix-ingress.gatewaySelector" . }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{- /* What the restricted Pod Security Standard asks of a Pod whose image runs as this user. */ -}}
{{- define "apisix-ingress.gatewayPodSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "apisix-ingress.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "apisix-ingress.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name the account, since serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* The value of a short name or of its long name, given as (list short value long value); both only if they are equal. */ -}}
{{- define "apisix-ingress.either" -}}
{{- $short := index . 1 -}}
{{- $long := index . 3 -}}
{{- if and $short $long (ne $short $long) -}}
{{- fail (printf "%s (%s) and %s (%s) are two names of one value: set only one of them" (index . 0) $short (index . 2) $long) -}}
{{- end -}}
{{- default (default "" $long) $short -}}
{{- end -}}

{{- define "apisix-ingress.ofImage" -}}
{{- $name := index . 1 -}}
{{- $values := (index . 0).Values -}}
{{- include "apisix-ingress.either" (list (printf "image.%s" $name) (get $values.image $name) (printf "deployment.image.%s" $name) (get $values.deployment.image $name)) -}}
{{- end -}}

{{- define "apisix-ingress.pullPolicy" -}}
{{- default "IfNotPresent" (include "apisix-ingress.ofImage" (list . "pullPolicy")) -}}
{{- end -}}

{{- /* Releases write the image that they publish into the annotation of the chart. */ -}}
{{- define "apisix-ingress.image" -}}
{{- $repository := default (index .Chart.Annotations "apisix-ingress/image") (include "apisix-ingress.ofImage" (list . "repository")) -}}
{{- if not $repository -}}
{{- fail "image.repository: no image is published yet: build one with deploy/Dockerfile, push it to a registry that your nodes can reach, and set its name there, such as registry.example.org/apisix-ingress" -}}
{{- else if and (not (contains "/" $repository)) (ne "Never" (include "apisix-ingress.pullPolicy" .)) -}}
{{- fail (printf "image.repository: %s has no registry, and Docker Hub has no image of this name: set the name with the registry, such as registry.example.org/%s; if the image is already on every node, set image.pullPolicy to Never" $repository $repository) -}}
{{- end -}}
{{- $digest := include "apisix-ingress.ofImage" (list . "digest") -}}
{{- if $digest -}}
{{ $repository }}@{{ $digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion (include "apisix-ingress.ofImage" (list . "tag")) }}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.className" -}}
{{- $class := .Values.config.kubernetes.ingressClass -}}
{{- if eq $class "apisix-and-all" -}}apisix{{- else -}}{{ $class }}{{- end -}}
{{- end -}}

{{- /* The admin URL of the first cluster: an endpoint, else a Service here, else the Service of the chart of APISIX. */ -}}
{{- define "apisix-ingress.adminUrl" -}}
{{- $plane := .Values.gatewayProxy.provider.controlPlane -}}
{{- $admin := .Values.apisix.adminService -}}
{{- $given := include "apisix-ingress.either" (list "adminUrl" .Values.adminUrl "gatewayProxy.provider.controlPlane.endpoints" (first (default list $plane.endpoints))) -}}
{{- if $given -}}
{{- $url := trimSuffix "/" $given -}}
{{- if (urlParse $url).path -}}{{ $url }}{{- else -}}{{ $url }}/apisix/admin{{- end -}}
{{- else if .Values.apisix.enabled -}}
http://{{ include "apisix-ingress.fullname" . }}-apisix-admin.{{ .Release.Namespace }}.svc:9180/apisix/admin
{{- else if $plane.service.name -}}
http://{{ $plane.service.name }}.{{ .Release.Namespace }}.svc:{{ $plane.service.port }}/apisix/admin
{{- else -}}
http://{{ $admin.name }}.{{ default .Release.Namespace $admin.namespace }}.svc:{{ $admin.port }}/apisix/admin
{{- end -}}
{{- end -}}

{{- /* The admin key of the first cluster, as JSON: {value, valueFrom: {secretKeyRef: {name, key}}}. */ -}}
{{- define "apisix-ingress.adminKey" -}}
{{- $where := "gatewayProxy.provider.controlPlane.auth.adminKey" -}}
{{- $long := .Values.gatewayProxy.provider.controlPlane.auth.adminKey -}}
{{- $ref := default dict (default dict $long.valueFrom).secretKeyRef -}}
{{- $name := include "apisix-ingress.either" (list "adminKey.existingSecret" .Values.adminKey.existingSecret (printf "%s.valueFrom.secretKeyRef.name" $where) $ref.name) -}}
{{- $key := include "apisix-ingress.either" (list "adminKey.existingSecretKey" .Values.adminKey.existingSecretKey (printf "%s.valueFrom.secretKeyRef.key" $where) $ref.key) -}}
{{- if and $long.value $name -}}
{{- fail (printf "%s: set value or valueFrom, not both; adminKey.existingSecret is a short name of the latter" $where) -}}
{{- end -}}
{{- dict "value" $long.value "valueFrom" (dict "secretKeyRef" (dict "name" $name "key" $key)) | toJson -}}
{{- end -}}

{{- /* Every gateway cluster in one form, as JSON: {"items": [{name, adminUrl, adminKey, tls}]}. */ -}}
{{- define "apisix-ingress.clusters" -}}
{{- $plane := .Values.gatewayProxy.provider.controlPlane -}}
{{- $first := dict "name" "default" "adminUrl" (include "apisix-ingress.adminUrl" .) -}}
{{- $_ := set $first "adminKey" (include "apisix-ingress.adminKey" . | fromJson) -}}
{{- $_ := set $first "tls" $plane.tls -}}
{{- $_ := set $first "mode" $plane.mode -}}
{{- $more := list -}}
{{- if not .Values.adminUrl -}}
{{- range rest (default list $plane.endpoints) -}}
{{- $url := trimSuffix "/" . -}}
{{- $more = append $more (ternary $url (printf "%s/apisix/admin" $url) (ne (urlParse $url).path "")) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $first "moreAdminUrls" $more -}}
{{- $items := list -}}
{{- range $index, $item := prepend .Values.clusters $first -}}
{{- $where := ternary "gatewayProxy.provider.controlPlane.auth.adminKey" (printf "clusters[%d].adminKey" (sub $index 1)) (eq $index 0) -}}
{{- $key := default dict $item.adminKey -}}
{{- $ref := default dict (default dict $key.valueFrom).secretKeyRef -}}
{{- if and $.Values.apisix.enabled (eq $index 0) (not $key.value) (not $ref.name) -}}
{{- $ref = dict "name" (printf "%s-apisix" (include "apisix-ingress.fullname" $)) "key" "admin-key" -}}
{{- end -}}
{{- if and $key.value $ref.name -}}
{{- fail (printf "%s: set value or valueFrom, not both" $where) -}}
{{- else if not (or $key.value $ref.name) -}}
{{- fail (printf "%s: the admin key of the gateways is missing and has no default: set the Secret that contains it (%s), or set the key itself (%s.value)" $where (ternary "adminKey.existingSecret" (printf "%s.valueFrom.secretKeyRef.name" $where) (eq $index 0)) $where) -}}
{{- end -}}
{{- if and (eq $.Values.preset "multi-tenant") (has $key.value (list "edd1c9f034335f136f87ad84b625c8f1" "4054f7cf07e344346cd3f287985e76a2")) -}}
{{- fail (printf "%s: this key is published with APISIX: set a secret one in the gateways and here" $where) -}}
{{- end -}}
{{- $secret := dict "name" $ref.name "key" (default "admin-key" $ref.key) -}}
{{- if $key.value -}}
{{- $secret = dict "name" (printf "%s-admin" (include "apisix-ingress.fullname" $)) "key" $item.name -}}
{{- end -}}
{{- $tls := merge (dict) (default dict $item.tls) (dict "verify" true "caSecretName" "" "clientSecretName" "") -}}
{{- if and $item.tls (hasKey $item.tls "verify") -}}{{- $_ := set $tls "verify" $item.tls.verify -}}{{- end -}}
{{- $items = append $items (dict "name" $item.name "adminUrl" $item.adminUrl "mode" (default "apisix" $item.mode) "moreAdminUrls" (default list $item.moreAdminUrls) "secret" $secret "value" (default "" $key.value) "tls" $tls "provider" $item.provider) -}}
{{- end -}}
{{- dict "items" $items | toJson -}}
{{- end -}}

{{- /* namespace/name of the ConfigMap with plugin metadata, or nothing. */ -}}
{{- define "apisix-ingress.pluginMetadata" -}}
{{- if .Values.gatewayProxy.provider.pluginMetadata -}}
{{- if .Values.config.kubernetes.pluginMetadata -}}
{{- fail "config.kubernetes.pluginMetadata and gatewayProxy.provider.pluginMetadata are mutually exclusive: set one of them" -}}
{{- end -}}
{{ .Release.Namespace }}/{{ include "apisix-ingress.fullname" . }}-plugin-metadata
{{- else -}}
{{ .Values.config.kubernetes.pluginMetadata }}
{{- end -}}
{{- end -}}

{{- /* Whether addresses are written to the status of an Ingress: "true" or nothing. */ -}}
{{- define "apisix-ingress.publishes" -}}
{{- $status := .Values.config.status -}}
{{- if and $status.enabled (or $status.publishService $status.addresses) -}}true{{- end -}}
{{- end -}}

{{- define "apisix-ingress.webhookSecret" -}}
{{- $certificate := .Values.webhook.certificate -}}
{{- if and $certificate.provided $certificate.certManager.enabled -}}
{{- fail "webhook.certificate: provided and certManager.enabled are mutually exclusive" -}}
{{- else if $certificate.provided -}}
{{- required "webhook.certificate.secretName: name the Secret with tls.crt and tls.key, since webhook.certificate.provided is true" $certificate.secretName -}}
{{- else -}}
{{ include "apisix-ingress.fullname" . }}-webhook
{{- end -}}
{{- end -}}

{{- /* Settings on which the preset has the last word, as JSON: {crossNamespace, codePlugins, …}. */ -}}
{{- define "apisix-ingress.isolation" -}}
{{- $kubernetes := .Values.config.kubernetes -}}
{{- if eq .Values.preset "multi-tenant" -}}
{{- dict "crossNamespace" "grant" "codePlugins" "refuse" "plugins" "reviewed" "secretReferences" "refuse" "externalAddresses" "refuse-internal" "hostOwnership" (ternary "assigned" "namespace" (eq $kubernetes.hostOwnership "assigned")) "consumerNames" "unambiguous" "recordIds" "wide" | toJson -}}
{{- else -}}
{{- pick $kubernetes "crossNamespace" "codePlugins" "plugins" "secretReferences" "externalAddresses" "hostOwnership" "consumerNames" "recordIds" | toJson -}}
{{- end -}}
{{- end -}}
