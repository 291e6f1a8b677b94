"""Tests of hermes_doctor.render."""
