"""Which record answers a request, and why the others don't: the gateway's matching, told instead of done.

Pure functions over record bodies, as a gateway holds them or as manifests give them. Nothing here asks a gateway,
and nothing here is on the path from an object to a record.
"""
