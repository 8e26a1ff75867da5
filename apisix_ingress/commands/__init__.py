"""The commands of the command line, one module each: arguments in, text and an exit status out.

A module imports only what its options need; expensive imports are inside the command. The packages below implement the
behaviour.
"""
