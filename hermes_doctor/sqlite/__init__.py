"""SQLite files read by our own code: no lock, no sidecar, no access time, whatever their state."""
