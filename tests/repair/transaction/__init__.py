"""Tests of hermes_doctor.repair.transaction."""
