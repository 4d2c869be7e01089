"""A command line as bash reads it: text to a tree of commands, or a refusal."""
