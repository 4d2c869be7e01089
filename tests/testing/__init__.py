"""Tests of the doubles and of the suite for agents."""
