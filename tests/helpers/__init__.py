"""Homes, servers and damage that several tests share."""
