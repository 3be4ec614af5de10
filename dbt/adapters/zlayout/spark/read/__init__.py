"""File skipping in SQL: file indexes, the relation cache, and the explanation of a query."""
