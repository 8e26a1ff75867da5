"""The whole control plane on a virtual clock: replicas, an API server, gateways, users and faults, from one seed."""
