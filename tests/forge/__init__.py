"""Issues, pull requests and hooks."""
