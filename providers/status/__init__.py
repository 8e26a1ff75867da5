"""Status: the conditions and addresses of objects, derived from reports and the states of records."""
