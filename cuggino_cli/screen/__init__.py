"""Terminal output: events become labeled text, a theme colors it, one writer prints it.

- `text`: control characters made visible, texts cut
- `fragments`: verbosity levels, labels, and the table of colors
- `format`: the sentence of an event (`cuggino.runs.words`) as labeled fragments
- `terminal`: the one writer to the terminal; `live`: the status area below
- `render`: the operator that prints a stream as it passes; `deliver_screen` and
  `plan_build_screen` for those loops
- `summary`, `runs`, `agents`, `verdicts`: the summary of a run, and tables
"""
