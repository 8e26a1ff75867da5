"""Providers: the loop. One module a kind that owns records; each decides when its objects are translated.

Kinds that own no records (Namespace, Pod, Secret, IngressClass …) need none: a translation that reads one of them is
recorded as its dependent and queued again when it changes.
"""
