"""What the records cost a gateway: CPU time per request, requests per second and latency, per provider and feature."""
