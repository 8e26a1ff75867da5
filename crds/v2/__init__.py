"""The shapes of `apisix.apache.org/v2`: one module a kind, `common` for what they share.

The fields are the union of what releases 1.8 and 2.2 of the reference controller read. Nothing here knows a gateway.
"""
