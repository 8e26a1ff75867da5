"""Problems of manifests as findings: a code, a place in a file, a sentence. Reads files and prints nothing.

What a problem is, is decided by the translation; here are only the rules that ask what has no effect at all.
"""
