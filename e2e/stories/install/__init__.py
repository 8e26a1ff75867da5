"""The chart, the CRDs, the image, permissions, the webhook and the quick start."""
