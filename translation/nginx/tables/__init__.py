"""The verdict tables, and the readers of the values."""
