"""The admission webhook: advice before an object is stored. The controller repeats every check.

It reads stores and cached schemas, never writes to either, and sends no request while an API server waits. Runs on
every replica.
"""
