"""Time, queues and tasks for one event loop, independent of Kubernetes and gateways."""
