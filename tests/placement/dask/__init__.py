"""Tests of the link to a Dask cluster, on a real one of several processes."""
