"""The objects of a host, one module for each kind of manifest."""
