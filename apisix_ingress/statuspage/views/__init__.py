"""The content of each page as plain data: the same dictionaries are rendered as HTML and, under `/status/api`, JSON."""
