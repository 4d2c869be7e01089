"""A command line as bash reads it: text in, a tree of commands out, or a refusal."""
