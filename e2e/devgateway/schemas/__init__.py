"""What the Admin API accepts: schemas of records and plugins, and the checks beyond them."""
