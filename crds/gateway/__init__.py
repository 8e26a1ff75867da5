"""Models of what is read of the Gateway API (gateway.networking.k8s.io).

The CRDs belong to the Gateway API project: nothing is generated from these models, and the API server has validated
what they read. They hold only the fields that a translation uses.
"""
