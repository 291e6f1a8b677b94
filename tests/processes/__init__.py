"""Tests of hermes_doctor.processes."""
