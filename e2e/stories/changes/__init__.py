"""Objects and controllers that are created, changed and removed: what must reach the gateways, and what must not."""
