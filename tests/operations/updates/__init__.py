"""Tests of hermes_doctor.operations.updates."""
