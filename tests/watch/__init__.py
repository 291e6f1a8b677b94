"""Tests of hermes_doctor.watch."""
