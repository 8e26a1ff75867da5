"""The effects of the annotations of a location: from values to plugins. One module per group of annotations."""
