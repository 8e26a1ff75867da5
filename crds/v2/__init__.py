"""The shapes of `apisix.apache.org/v2`: one module per kind, `common` for shared parts.

The fields are the union of the fields in releases 1.8 and 2.2 of the reference controller. Nothing here depends on a
gateway.
"""
