"""Which requests go where: HTTPRoute, GRPCRoute and the stream routes."""
