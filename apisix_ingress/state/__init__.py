"""The state in memory: objects, reads, claims and desired records.

One event loop owns it, so there are no locks; nothing here does I/O.
"""
