"""Tests of hermes_doctor.operations.watch."""
