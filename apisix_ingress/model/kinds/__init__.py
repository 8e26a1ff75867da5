"""The kinds that the controller watches: the table, the definition of a row, and the indexes of stores."""
