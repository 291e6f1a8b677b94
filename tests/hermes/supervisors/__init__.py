"""Tests of hermes_doctor.hermes.supervisors."""
