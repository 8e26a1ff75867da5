"""Providers: the reconcile loops. Each kind that owns records has a module that decides when to translate its objects.

Most kinds that own no records (Secret, IngressClass …) have no provider: a translation that reads such an object is
recorded as a dependent of it and queued again when the object changes.
"""
