"""Kinds of `apisix.apache.org/v1alpha1` that extend the Gateway API."""
