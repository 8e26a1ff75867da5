"""The foundation of the stories: the local cluster, and the client for the API server."""
