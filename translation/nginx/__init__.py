"""Ingresses of ingress-nginx → records. The host is the unit of translation, like the server of nginx.

One module per group of annotations. Every fact about ingress-nginx here was observed on a live controller 1.15.1.
"""
