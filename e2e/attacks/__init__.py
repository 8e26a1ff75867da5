"""Attacks: what tenants, clients, Pods, servers and files try, with traffic that shows that it fails.

One module for each attacker. Every attack runs against an installation with the preset for several tenants and with the
provider of ingress-nginx: `installation`.
"""
