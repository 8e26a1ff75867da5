"""The demonstrations: `make demo` and `make demo-cluster`."""
