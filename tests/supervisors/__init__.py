"""Tests of hermes_doctor.supervisors."""
