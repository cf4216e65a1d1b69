"""Job files that come with the package, and the user code that they name."""
