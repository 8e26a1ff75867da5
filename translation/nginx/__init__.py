"""Ingresses of ingress-nginx → records: the host is the unit of translation, as the server is nginx's.

One module a group of annotations. Every fact about ingress-nginx here was observed from a live controller 1.15.1.
"""
