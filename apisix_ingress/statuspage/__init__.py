"""The status page: what the controller holds and does, for people with a browser and for scripts.

Reads the world and the sync engines, changes neither. Nothing here decides what is written where.
"""
