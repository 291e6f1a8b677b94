"""Tests of hermes_doctor.repair.gateway."""
