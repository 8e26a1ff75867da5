"""Everything that talks to the API server, and the manifest source that can replace it.

Reflectors fill stores, the elector creates terms, and writers update status and record Events. `providers` and
`translation` interpret the objects.
"""
