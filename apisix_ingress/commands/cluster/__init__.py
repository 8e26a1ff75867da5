"""Commands for a running controller and its objects."""
