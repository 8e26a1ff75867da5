"""Protection of a location: who may send requests, how many, and how they authenticate."""
