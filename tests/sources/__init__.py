"""Tests of `cuggino.sources`."""
