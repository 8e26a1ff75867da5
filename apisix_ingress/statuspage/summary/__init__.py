"""What the page derives from a snapshot once: findings, hosts, certificates and totals. `views` presents it."""
