"""Tests of hermes_doctor.sqlite.salvage."""
