"""Questions of our own, in the same shape: one file each."""
