"""Unit tests of the parts of e2e that need no cluster."""
