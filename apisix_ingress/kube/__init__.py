"""Everything that talks to the API server, and the file source that stands in for it.

Reflectors fill stores, the elector makes terms, writers change status and record events. What objects mean is
decided elsewhere.
"""
