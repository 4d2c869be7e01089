"""The command line of cuggino: a thin subscriber to the streams of the library."""
