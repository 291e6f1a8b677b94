"""Tests of hermes_doctor.hermes.settings.edit."""
