"""Tests of hermes_doctor.core.system."""
