"""Tests of hermes_doctor.backup.records."""
