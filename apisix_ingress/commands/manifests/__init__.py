"""Commands that only need manifests."""
