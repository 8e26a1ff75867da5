"""The kinds that the controller reads: what a row of the table says, the table, and the indexes of stores."""
