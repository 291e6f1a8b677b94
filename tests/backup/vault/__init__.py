"""Tests of hermes_doctor.backup.vault."""
