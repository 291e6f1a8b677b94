"""Tests of hermes_doctor.hermes.processes."""
