"""Providers of the kinds of `apisix.apache.org/v1alpha1`."""
