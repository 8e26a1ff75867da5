"""What talks to gateway clusters: the Admin API, the plan of what to write there, and the engine that carries it out.

Nothing here knows an object of Kubernetes or what a field of a record means.
"""
