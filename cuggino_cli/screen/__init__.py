"""Terminal output: events become labeled text, a theme colors it, one writer prints it.

- `text`: control characters made visible, columns measured, durations and amounts formatted
- `fragments`: verbosity levels, labels, and the table of colors
- `format`: an event as labeled fragments; `deliver_text` and `plan_build_text` for those loops
- `terminal`: the one writer to the terminal; `spinner`: the animated line below
- `render`: the operator that prints a stream as it passes; `deliver_screen` and
  `plan_build_screen` for those loops
- `summary`, `runs`, `agents`, `verdicts`: the summary of a run, and tables
"""
