"""Tests of hermes_doctor.knowledge."""
