"""The views of one object or one record, with everything that it is connected to."""
