"""Comparing a gateway cluster with the desired records: audits, spot checks and adoption."""
