"""Stories about the Gateway API."""
