"""Tests of `cuggino.folders`."""
