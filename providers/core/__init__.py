"""What all providers share: the reconcile loop, the registry and conditions."""
