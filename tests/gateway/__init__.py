"""Tests of hermes_doctor.gateway."""
