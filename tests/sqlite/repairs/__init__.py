"""Tests of hermes_doctor.sqlite.repairs."""
