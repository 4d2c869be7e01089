"""Tests of the test doubles and of the conformance suite for agents."""
