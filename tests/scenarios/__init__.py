"""Tests of promises that cross packages."""
