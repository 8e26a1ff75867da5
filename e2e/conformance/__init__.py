"""The official conformance suite of the Gateway API against the controller: `make conformance`."""
