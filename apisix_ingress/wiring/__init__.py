"""Builds the parts of the program from the settings and connects them. `app` puts the result together."""
