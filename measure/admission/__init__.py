"""Hundreds of inputs on few readers."""
