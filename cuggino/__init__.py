"""cuggino."""
