#!/usr/bin/env bash
# live.sh up|down: from nothing to live traffic through a real APISIX. A kind cluster, the image built from this checkout,
# APISIX with its etcd, the controller by its chart, one Ingress; ends with a request that the Ingress serves.
set -euo pipefail

KIND_VERSION=v0.30.0
NAME=apisix-ingress-live
IMAGE=apisix-ingress:live
APISIX_IMAGE=${APISIX_IMAGE:-apache/apisix:3.18.0-debian}
PORT=${PORT:-9080}
WAIT=180
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
KUBECONFIG_FILE=${APISIX_INGRESS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/apisix-ingress}/live.kubeconfig

die() {
  echo "live.sh: $*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null || die "$1 is needed: $2"
}

kind_command() {
  if command -v kind >/dev/null && [[ "$(kind version)" == *" $KIND_VERSION "* ]]; then
    kind "$@"
  else
    need go "install Go 1.24 or newer, or kind $KIND_VERSION"
    go run "sigs.k8s.io/kind@$KIND_VERSION" "$@"
  fi
}

# kubectl of the node's own image, helm at the version that e2e pins: the machine needs neither.
kubectl_command() {
  docker exec -i "$NAME-control-plane" kubectl --kubeconfig=/etc/kubernetes/admin.conf "$@"
}

helm_command() {
  need go "install Go 1.24 or newer"
  go -C "$ROOT/e2e/cluster/helm" run helm.sh/helm/v3/cmd/helm --kubeconfig "$KUBECONFIG_FILE" "$@"
}

create_cluster() {
  mkdir -p "$(dirname "$KUBECONFIG_FILE")"
  kind_command create cluster --name "$NAME" --kubeconfig "$KUBECONFIG_FILE" --wait "${WAIT}s" --config - <<YAML
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
  - role: control-plane
    extraPortMappings: [{containerPort: 30080, hostPort: $PORT, listenAddress: 127.0.0.1}]
YAML
}

install_gateway() {
  local key etcd_image
  key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  # The etcd that runs on the node already: nothing else is fetched.
  etcd_image=$(kubectl_command -n kube-system get pods -l component=etcd -o 'jsonpath={.items[0].spec.containers[0].image}')
  kubectl_command create namespace apisix --dry-run=client -o yaml | kubectl_command apply -f -
  kubectl_command create namespace apisix-ingress --dry-run=client -o yaml | kubectl_command apply -f -
  kubectl_command label namespace apisix-ingress pod-security.kubernetes.io/enforce=restricted --overwrite
  local namespace
  for namespace in apisix apisix-ingress; do
    kubectl_command -n "$namespace" create secret generic admin --from-literal="admin-key=$key" \
      --dry-run=client -o yaml | kubectl_command apply -f -
  done
  sed -e "s|ETCD_IMAGE|$etcd_image|" -e "s|APISIX_IMAGE|$APISIX_IMAGE|" -e "s|CONTROLLER_IMAGE|$IMAGE|" \
    "$HERE/apisix.yaml" | kubectl_command apply -f -
}

install_controller() {
  helm_command upgrade --install apisix-ingress "$ROOT/deploy/charts/apisix-ingress" --namespace apisix-ingress \
    --set image.repository="${IMAGE%:*}" --set image.tag="${IMAGE#*:}" --set image.pullPolicy=Never \
    --set apisix.adminService.namespace=apisix \
    --set adminKey.existingSecret=admin \
    --wait --timeout "${WAIT}s"
}

until_live() {
  local deadline=$((SECONDS + WAIT))
  until curl --silent --fail --output /dev/null --max-time 5 --header 'Host: web.example.org' "http://127.0.0.1:$PORT/"; do
    ((SECONDS < deadline)) || die "no response on port $PORT after $WAIT s: kubectl --kubeconfig $KUBECONFIG_FILE get pods -A"
    sleep 1
  done
}

up() {
  need docker "install Docker and start it"
  need curl "install curl"
  docker info >/dev/null 2>&1 || die "Docker does not respond: start it, and check that you may use it (docker info)"
  docker build --file "$ROOT/deploy/Dockerfile" --tag "$IMAGE" "$ROOT"
  docker inspect "$NAME-control-plane" >/dev/null 2>&1 || create_cluster
  kind_command load docker-image "$IMAGE" --name "$NAME"
  install_gateway
  kubectl_command -n apisix rollout status deployment/etcd deployment/apisix --timeout "${WAIT}s"
  install_controller
  until_live
  echo "live: curl -H 'Host: web.example.org' http://127.0.0.1:$PORT/"
  echo "kubeconfig: $KUBECONFIG_FILE"
}

case "${1:-}" in
  up) up ;;
  down) kind_command delete cluster --name "$NAME" --kubeconfig "$KUBECONFIG_FILE" ;;
  *) die "usage: live.sh up|down" ;;
esac
