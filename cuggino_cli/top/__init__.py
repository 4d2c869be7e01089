"""`cuggino top`: the rows, what the keys do, and the screen."""
