"""Memory: objects, what was read of them, what is wanted and what should exist.

One event loop owns it: no locks, no I/O.
"""
