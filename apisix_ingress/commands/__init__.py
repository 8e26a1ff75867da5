"""The commands of the command line, one module each: arguments in, text and an exit code out.

A module imports only what its options need; every import that costs time is inside the command. Nothing here decides
what a record is: that belongs to the packages below.
"""
