"""How much later than it happens a tuple arrives."""
