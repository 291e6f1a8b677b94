"""Tests of hermes_doctor.repair.schedule."""
