"""Schemas of records and plugins, and further checks of the Admin API."""
