"""Jobs that come with the package, and what they name of a user's own."""
