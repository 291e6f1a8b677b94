"""Tests of hermes_doctor.repair.planning."""
