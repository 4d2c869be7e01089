"""Providers: what an agent CLI says, and the real one driven on loopback."""
