"""The timeline of a table: instants, versions, transactions, recovery and cleaning."""
