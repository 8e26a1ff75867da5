#!/usr/bin/env bash
# kind.sh up|down|kubeconfig: the control plane of cluster.yaml in Docker, for `pytest e2e --cluster=kind`.
# `up` prints the path of the kubeconfig on its last line. It adds a `local` route for the pod range to this machine,
# `down` removes it; both need root (or sudo).
set -euo pipefail

KIND_VERSION=v0.30.0 # its default node image is Kubernetes 1.34.0, pinned by digest inside kind
NAME=apisix-ingress-e2e
POD_RANGE=10.244.0.0/16
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
KUBECONFIG_FILE=${APISIX_INGRESS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/apisix-ingress}/kind.kubeconfig

die() {
  echo "kind.sh: $*" >&2
  exit 1
}

need() {
  command -v "$1" >/dev/null || die "$1 is needed: $2"
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

kind_command() {
  if command -v kind >/dev/null && [[ "$(kind version)" == *" $KIND_VERSION "* ]]; then
    kind "$@"
  else
    need go "install Go 1.24 or newer, or kind $KIND_VERSION"
    go run "sigs.k8s.io/kind@$KIND_VERSION" "$@"
  fi
}

# kubectl of the node's own image: the machine needs none.
kubectl_apply() {
  docker exec -i "$NAME-control-plane" kubectl --kubeconfig=/etc/kubernetes/admin.conf apply --server-side -f - >&2
}

crds() {
  local file
  while IFS= read -r file; do
    echo '---'
    cat "$file"
  done < <(find "$ROOT/crds" -name '*.yaml' | sort)
}

up() {
  need docker "install Docker and start it"
  need ip "install iproute2"
  docker info >/dev/null 2>&1 || die "Docker does not respond: start it, and check that you may use it (docker info)"
  mkdir -p "$(dirname "$KUBECONFIG_FILE")"
  if docker inspect "$NAME-control-plane" >/dev/null 2>&1; then
    kind_command export kubeconfig --name "$NAME" --kubeconfig "$KUBECONFIG_FILE" >&2
  else
    kind_command create cluster --config "$HERE/cluster.yaml" --kubeconfig "$KUBECONFIG_FILE" >&2
  fi
  kubectl_apply <"$HERE/nodes.yaml"
  crds | kubectl_apply
  as_root ip route replace local "$POD_RANGE" dev lo
  echo "$KUBECONFIG_FILE"
}

down() {
  as_root ip route del local "$POD_RANGE" dev lo 2>/dev/null || true
  kind_command delete cluster --name "$NAME" --kubeconfig "$KUBECONFIG_FILE"
}

case "${1:-}" in
  up) up ;;
  down) down ;;
  kubeconfig) echo "$KUBECONFIG_FILE" ;;
  *) die "usage: kind.sh up|down|kubeconfig" ;;
esac
