"""The admission webhook: advice before an object is stored. Every check is made again by the controller.

It looks at stores and at schemas that were read before; it never writes to either, and asks nobody while an API
server waits. Runs on every replica.
"""
