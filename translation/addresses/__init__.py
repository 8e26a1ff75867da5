"""The address policy: where requests may be sent."""
