"""The checks that the admission webhook makes of one object."""
