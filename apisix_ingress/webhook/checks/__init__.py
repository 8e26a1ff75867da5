"""The checks of the admission webhook for one object."""
