"""Tests of hermes_doctor.probes.network."""
