"""API servers, gateways and controllers that fail, hang, restart or are killed."""
