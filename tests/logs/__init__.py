"""Tests of hermes_doctor.logs."""
