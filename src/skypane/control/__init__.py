"""Pure laws of control: which worker gets a row, whether rows move at all, where windows are answered."""
