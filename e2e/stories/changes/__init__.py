"""Objects and controllers that come, change and go: what reaches the gateways, and what must not be written."""
