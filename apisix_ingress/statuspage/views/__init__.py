"""The content of each page as plain data: the same dictionaries become HTML and, under `/status/api`, JSON."""
