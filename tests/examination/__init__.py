"""Tests of hermes_doctor.examination."""
