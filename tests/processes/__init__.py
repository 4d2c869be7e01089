"""Tests of `cuggino.processes`."""
