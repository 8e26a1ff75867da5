"""Time, queues and tasks: what an event loop needs and neither Kubernetes nor a gateway knows about."""
