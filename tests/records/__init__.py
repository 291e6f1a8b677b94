"""Tests of hermes_doctor.records."""
