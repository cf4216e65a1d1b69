"""Entry: which rows may enter a query, why the others may not, and how many there are of each."""
