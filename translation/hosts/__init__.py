"""Hosts, certificates and the conflicts over them."""
