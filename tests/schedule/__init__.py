"""Tests of hermes_doctor.schedule."""
