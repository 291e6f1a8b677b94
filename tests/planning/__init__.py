"""Tests of hermes_doctor.planning."""
