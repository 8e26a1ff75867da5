"""One look at an API server and its gateways, for commands: what is there, what should be, and where they differ.

Everything here reads once and ends; it runs the stores and providers of the controller, so that both agree. Documents
are plain data; the lines that people read are made from them. Nothing here writes to a gateway or to an object.
"""
