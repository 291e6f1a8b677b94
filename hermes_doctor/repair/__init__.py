"""From a finding to a repair that is proven, and that can be undone."""
