"""When tuples are sent: rates, bursts, sources that fall silent."""
