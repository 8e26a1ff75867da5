#!/usr/bin/env bash
# kind.sh up|down|kubeconfig|test [pytest arguments]: the control plane of cluster.yaml in Docker, or in podman with
# KIND_EXPERIMENTAL_PROVIDER=podman. `up` prints the path of the kubeconfig on its last line. It makes the addresses of pods
# and clients local to this machine, `down` removes these routes; both need root (or sudo). `test` runs the stories between
# `up` and `down`. NODE_IMAGE replaces kind's default node image.
set -euo pipefail

KIND_VERSION=v0.30.0 # its default node image is Kubernetes 1.34.0, pinned by digest inside kind
NAME=apisix-ingress-e2e
ENGINE=${KIND_EXPERIMENTAL_PROVIDER:-docker}
# As in e2e/netns.py.
LOCAL_RANGES=(10.244.0.0/16 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24)
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
  "$ENGINE" exec -i "$NAME-control-plane" kubectl --kubeconfig=/etc/kubernetes/admin.conf apply --server-side -f - >&2
}

crds() {
  local file
  while IFS= read -r file; do
    echo '---'
    cat "$file"
  done < <(find "$ROOT/crds" -name '*.yaml' | sort)
}

up() {
  need "$ENGINE" "install it, and start it if it is a service"
  need ip "install iproute2"
  "$ENGINE" info >/dev/null 2>&1 || die "$ENGINE does not respond: start it, and check that you may use it ($ENGINE info)"
  mkdir -p "$(dirname "$KUBECONFIG_FILE")"
  if "$ENGINE" inspect "$NAME-control-plane" >/dev/null 2>&1; then
    kind_command export kubeconfig --name "$NAME" --kubeconfig "$KUBECONFIG_FILE" >&2
  else
    kind_command create cluster --config "$HERE/cluster.yaml" --kubeconfig "$KUBECONFIG_FILE" \
      ${NODE_IMAGE:+--image "$NODE_IMAGE"} >&2
  fi
  kubectl_apply <"$HERE/nodes.yaml"
  crds | kubectl_apply
  local range
  for range in "${LOCAL_RANGES[@]}"; do
    as_root ip route replace local "$range" dev lo
  done
  echo "$KUBECONFIG_FILE"
}

down() {
  local range
  for range in "${LOCAL_RANGES[@]}"; do
    as_root ip route del local "$range" dev lo 2>/dev/null || true
  done
  kind_command delete cluster --name "$NAME" --kubeconfig "$KUBECONFIG_FILE"
}

run_stories() {
  trap down EXIT
  up >/dev/null
  as_root env "PATH=$PATH" "$ROOT/.venv/bin/python" -m pytest "${@:-e2e}" --cluster=kind --kubeconfig="$KUBECONFIG_FILE"
}

case "${1:-}" in
  up) up ;;
  down) down ;;
  kubeconfig) echo "$KUBECONFIG_FILE" ;;
  test) shift && cd "$ROOT" && run_stories "$@" ;;
  *) die "usage: kind.sh up|down|kubeconfig|test [pytest arguments]" ;;
esac
