"""Tests of hermes_doctor.diagnosis.probes."""
