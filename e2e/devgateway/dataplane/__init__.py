"""The data plane: from a connection to a route, an upstream node and a response."""
