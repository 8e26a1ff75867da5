"""Values that the whole program uses: keys, records, names and ids, trimmed Kubernetes objects.

Nothing here awaits, logs or keeps state.
"""
