"""Commands that look at a running controller and its objects."""
