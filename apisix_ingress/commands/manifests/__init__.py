"""Commands that need manifests only."""
