"""Objects from YAML and JSON files instead of an API server."""
