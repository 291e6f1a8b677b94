"""The files beside the databases in which Hermes keeps things: what each is, and its condition."""
