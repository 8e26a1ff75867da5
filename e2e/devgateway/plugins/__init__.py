"""The plugins that the data plane runs."""
