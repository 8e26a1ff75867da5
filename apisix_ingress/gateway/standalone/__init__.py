"""Gateways without etcd: each gets all records in one document, over its own Admin API (`apisix-standalone`)."""
