"""Native manifests for hosts of ingress-nginx: the records that the provider generates, as objects that generate them.

The records are the input, so a manifest means what the provider serves. What a target cannot express becomes a note; a
path whose protection it cannot express responds with 503.
"""
