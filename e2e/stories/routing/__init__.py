"""What routes, Ingresses, upstreams, certificates, consumers and plugins do to requests."""
