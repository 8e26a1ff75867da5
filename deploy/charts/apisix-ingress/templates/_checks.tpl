{{- /* What the schema cannot compare. The program rejects these values as well, but only when a Pod starts. */ -}}

{{- /* The seconds of a duration: a text such as 1m30s, or a number of seconds. */ -}}
{{- define "apisix-ingress.seconds" -}}
{{- if kindIs "string" . -}}
{{- $zero := toDate "2006-01-02" "2000-01-01" -}}
{{- ((mustDateModify . $zero).Sub $zero).Seconds -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.checkElection" -}}
{{- $election := .Values.config.leaderElection -}}
{{- $lease := include "apisix-ingress.seconds" $election.leaseDuration | float64 -}}
{{- $deadline := include "apisix-ingress.seconds" $election.renewDeadline | float64 -}}
{{- $retry := include "apisix-ingress.seconds" $election.retryPeriod | float64 -}}
{{- if and $election.disable (gt (int .Values.deployment.replicas) 1) -}}
{{- fail "config.leaderElection.disable requires deployment.replicas: 1, otherwise every replica writes" -}}
{{- end -}}
{{- if le $lease $deadline -}}
{{- fail (printf "config.leaderElection.leaseDuration (%v) must be longer than renewDeadline (%v): increase the first or decrease the second" $election.leaseDuration $election.renewDeadline) -}}
{{- end -}}
{{- if le $deadline (mulf $retry 1.2) -}}
{{- fail (printf "config.leaderElection.renewDeadline (%v) must be longer than 1.2 times retryPeriod (%v): increase the first or decrease the second" $election.renewDeadline $election.retryPeriod) -}}
{{- end -}}
{{- end -}}

{{- /* A write may be in flight for the timeout; it must have ended when the lease can run out. */ -}}
{{- define "apisix-ingress.checkTimeouts" -}}
{{- $config := .Values.config -}}
{{- $election := $config.leaderElection -}}
{{- $lease := include "apisix-ingress.seconds" $election.leaseDuration | float64 -}}
{{- $spare := subf $lease (include "apisix-ingress.seconds" $election.renewDeadline | float64) -}}
{{- range $index, $item := prepend .Values.clusters dict -}}
{{- $where := ternary "config.provider.timeout" (printf "clusters[%d].provider.timeout" (sub $index 1)) (eq $index 0) -}}
{{- $timeout := default $config.provider.timeout (default dict $item.provider).timeout -}}
{{- if and (not $election.disable) (gt (include "apisix-ingress.seconds" $timeout | float64) $spare) -}}
{{- fail (printf "%s (%v) must be at most config.leaderElection.leaseDuration - renewDeadline (%vs), otherwise a write could outlive the lease: decrease it or increase leaseDuration" $where $timeout $spare) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.checkClusterNames" -}}
{{- $names := list "default" -}}
{{- range $index, $item := .Values.clusters -}}
{{- if has $item.name $names -}}
{{- fail (printf "clusters[%d].name: %q is already in use%s: give each cluster a unique name" $index $item.name (ternary ", by the gateways of gatewayProxy" "" (eq $item.name "default"))) -}}
{{- end -}}
{{- $names = append $names $item.name -}}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.checkBudget" -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- $least := toString $budget.minAvailable -}}
{{- $most := toString $budget.maxUnavailable -}}
{{- if and $budget.enabled (gt (int .Values.deployment.replicas) 1) $least $most -}}
{{- fail (printf "podDisruptionBudget: minAvailable (%s) and maxUnavailable (%s) are mutually exclusive: set one of them" $least $most) -}}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.checkPodLabels" -}}
{{- $selected := include "apisix-ingress.selectorLabels" . | fromYaml -}}
{{- range $name, $_ := .Values.deployment.podLabels -}}
{{- if hasKey $selected $name -}}
{{- fail (printf "deployment.podLabels: %s is one of the selector labels of the Pods: use another label, or labelsOverride" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "apisix-ingress.checks" -}}
{{- if and .Values.rbac.secrets (ne .Values.config.kubernetes.secrets "referenced") -}}
{{- fail "rbac.secrets requires config.kubernetes.secrets: referenced, otherwise the controller lists every Secret" -}}
{{- end -}}
{{- include "apisix-ingress.checkBudget" . -}}
{{- include "apisix-ingress.checkPodLabels" . -}}
{{- include "apisix-ingress.checkElection" . -}}
{{- include "apisix-ingress.checkTimeouts" . -}}
{{- include "apisix-ingress.checkClusterNames" . -}}
{{- if and .Values.webhook.enabled (eq (int .Values.webhook.port) 8080) -}}
{{- fail "webhook.port: 8080 is the port of health and metrics: use another one, such as 8443" -}}
{{- end -}}
{{- $certificate := .Values.webhook.certificate -}}
{{- if and .Values.webhook.enabled $certificate.secretName (not $certificate.provided) -}}
{{- fail "webhook.certificate.secretName has no effect: set webhook.certificate.provided to true, or leave it out" -}}
{{- end -}}
{{- $plane := .Values.gatewayProxy.provider.controlPlane -}}
{{- if and .Values.apisix.enabled (or .Values.adminUrl $plane.endpoints $plane.service.name) -}}
{{- fail "apisix.enabled installs a gateway, but adminUrl or gatewayProxy.provider.controlPlane names another one: set one of them" -}}
{{- end -}}
{{- if and .Values.apisix.enabled (or (eq .Values.preset "multi-tenant") (not .Values.networkPolicy.enabled)) -}}
{{- fail "apisix.enabled installs an etcd without authentication, which tenants could reach through the gateways with preset multi-tenant, and every Pod without networkPolicy.enabled: install APISIX with its own chart and an etcd with client certificates, and set adminUrl" -}}
{{- end -}}
{{- range $old, $new := dict "replicaCount" "deployment.replicas" "resources" "deployment.resources" "nodeSelector" "deployment.nodeSelector" "tolerations" "deployment.tolerations" "affinity" "deployment.affinity" -}}
{{- if hasKey $.Values $old -}}
{{- fail (printf "%s is a value of the chart of controller 1.8: set %s; docs/install.md has every new name" $old $new) -}}
{{- end -}}
{{- end -}}
{{- $watched := .Values.config.kubernetes.watchNamespaces -}}
{{- $published := splitList "/" .Values.config.status.publishService | first -}}
{{- if and $published (ne $published "auto") $watched (not (has $published $watched)) -}}
{{- fail (printf "config.status.publishService is in namespace %s, which is not watched: add it to config.kubernetes.watchNamespaces" $published) -}}
{{- end -}}
{{- end -}}
