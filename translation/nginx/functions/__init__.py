"""The functions that run in a gateway, and how routes get them. All are constant; no text of an Ingress is code."""
