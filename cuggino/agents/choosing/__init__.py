"""Choosing agents: by name, by configuration, and by fallback."""
