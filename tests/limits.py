"""The time limit of all tests.

Only a failure reaches it, so it is long: a busy machine must not fail a test. What a test starts to
sleep until it is ended sleeps longer.
"""

LIMIT = 300.0
"""Seconds after which something that should have happened counts as lost.

`timeout` in `pyproject.toml` is longer.
"""
