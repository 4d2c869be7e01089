"""The tests of cuggino: shared doubles and real agents here, one folder per package."""
