"""Replacements of snippets: nginx configuration in annotations, which is read and never executed."""
