"""Tests of hermes_doctor.updates."""
