"""Problems of manifests as findings: a code, a place in a file, a sentence. Reads files and prints nothing.

The translation detects most problems; only `rules` is specific to linting and detects parts without effect.
"""
