"""What the stories stand on: the local cluster, and the client for the API server."""
