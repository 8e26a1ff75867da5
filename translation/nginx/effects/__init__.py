"""What the annotations of a location do, one module a group: from values to plugins of a gateway."""
