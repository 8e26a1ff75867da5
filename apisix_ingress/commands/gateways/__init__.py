"""Commands that look at the records of gateways."""
