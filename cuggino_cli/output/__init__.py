"""What the terminal shows: events become labelled text, a theme colours it, one writer prints it.

- `verbosity`: how much is shown
- `format`: event -> labelled fragments, pure; `tools` and `durations` word its parts
- `theme`: fragments -> text, the one table of colours; `sanitize` makes foreign text inert
- `spinner`: the line that shows that work goes on, and the timer that moves it
- `terminal`: the one writer to the terminal
- `render`: the operator that prints a stream as it passes
- `summary`: the lines at the end of a run
"""
