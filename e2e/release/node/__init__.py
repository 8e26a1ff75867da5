"""A node that runs Pods: kubelet and containerd beside the local API server, in namespaces of their own."""
