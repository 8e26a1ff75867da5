"""Explains which record handles a request, and why the others do not, by the gateway's matching rules.

Pure functions over record bodies, from a gateway or from manifests. Nothing here sends a request, and nothing here is
used to generate records.
"""
