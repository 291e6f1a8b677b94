"""Tests of hermes_doctor.cli."""
