"""Renders reports, plans and receipts as text for people and as JSON.

It gets finished values only; `cli` decides what is shown.
"""
