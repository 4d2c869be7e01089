"""Tests of `cuggino.placement`."""
