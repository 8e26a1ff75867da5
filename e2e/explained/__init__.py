"""Compares what `explain` predicts with what a gateway does, for generated sets of objects of every provider."""
