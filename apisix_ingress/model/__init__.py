"""Values that the whole program speaks in: keys, records, names and ids, trimmed Kubernetes objects.

Nothing here awaits, logs or keeps state.
"""
