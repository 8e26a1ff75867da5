"""Benchmarks that compare controllers on this machine in one run. Nothing here is a test: no figure is asserted."""
