"""Safety: the last check of each record, as the gateway will execute it, whichever translation generated it.

It knows what APISIX does with the fields of a record: which texts it resolves, and where it connects to. What a
manifest may contain is checked elsewhere.
"""
