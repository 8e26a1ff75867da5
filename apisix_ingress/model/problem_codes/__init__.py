"""Problem codes: the table, the definition of a code, and the codes of each subject."""
