"""From a home to a report: probes, plugins, examination."""
