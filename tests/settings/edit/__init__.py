"""Tests of hermes_doctor.settings.edit."""
