"""Tests of hermes_doctor.system."""
