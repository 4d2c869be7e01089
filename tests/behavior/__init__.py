"""What loop tools do to agents that fail: the same scripted agents, played on each of them."""
