"""Entry of rows: which rows may enter a query, why others are rejected, and the counts of both."""
