"""Tests of hermes_doctor.operations.provider_switch."""
