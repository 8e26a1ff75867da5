"""Gateway clusters: the client of the Admin API, the plan of what to write, and the engine that writes it.

Nothing here knows Kubernetes objects or the meaning of a record's fields.
"""
