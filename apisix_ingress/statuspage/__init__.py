"""The status page: the state of the controller, for browsers and scripts.

It reads the state and the sync engines and changes neither.
"""
