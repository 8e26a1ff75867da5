"""Figures of this machine, side by side in one run. Nothing here is a test: no figure is asserted."""
