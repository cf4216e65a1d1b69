"""Where files lie: file systems and object stores, behind one interface."""
