"""Which values are secret, and how they are masked. Pure."""
