"""The effect of routes, Ingresses, upstreams, certificates, consumers and plugins on requests."""
