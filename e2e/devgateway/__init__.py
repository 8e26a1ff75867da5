"""A development stand-in for an Apache APISIX gateway: real etcd, Admin API, HTTP data plane. Never for production."""
