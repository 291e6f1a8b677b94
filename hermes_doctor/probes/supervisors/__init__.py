"""Whatever can start a gateway again: one module for each kind of supervisor."""
