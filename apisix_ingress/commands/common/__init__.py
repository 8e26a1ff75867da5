"""Shared by the commands: settings, progress, input and output."""
