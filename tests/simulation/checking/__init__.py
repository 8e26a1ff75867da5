"""What a simulation records, what it expects, and what it checks."""
