"""Renders reports, plans and receipts as text for people, as JSON, and for monitors.

It gets finished values only; `cli` decides what is shown.
"""
