"""Terminal output: events become labeled text, a theme colors it, one writer prints it.

- `text`, `columns`: control characters made visible, texts cut and measured
- `fragments`: verbosity levels, labels, and the table of colors
- `format`: the sentence of an event (`cuggino.runs.words`) as labeled fragments;
  `event_lines`: with what came before; `messages`: the agent's messages while they are streamed
- `render`: the one screen and the operator that prints a stream as it passes; `printers`: what
  each loop prints on it
- `terminal`: the one writer to the terminal; `status`, `panel`, `live`: the status area below
- `summary`, `runs`, `agents`, `verdicts`: the summary of a run, and tables
"""
