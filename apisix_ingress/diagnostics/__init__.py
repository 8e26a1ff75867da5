"""Reads an API server and its gateways once, for commands: the actual state, the desired state, and the differences.

It runs the stores and providers of the controller, so that both agree. Documents are plain data, from which the text
output is generated. Nothing here writes to a gateway or to an object, except `reports.orphans.take`.
"""
