"""Routes: HTTPRoute, GRPCRoute and the stream routes."""
