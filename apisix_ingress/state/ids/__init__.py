"""Ids of records: derived from names, or adopted from records that the gateways already have."""
