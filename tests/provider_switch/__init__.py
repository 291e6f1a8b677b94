"""Tests of hermes_doctor.provider_switch."""
