"""Stories about plugins, the consumers that they authenticate, and global rules."""
