"""Commands that read the records of gateways."""
