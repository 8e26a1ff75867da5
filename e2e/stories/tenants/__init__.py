"""Namespaces that do not trust each other."""
