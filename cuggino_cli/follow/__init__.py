"""Following a run from the command line: output options, views, exit codes, Ctrl-C.

`follower.follow` subscribes to any run and returns the exit code. A view of `views` decides
what to print.
"""
