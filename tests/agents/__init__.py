"""Tests of the providers: parsing their wire formats, and running the real programs on loopback."""
