"""Tests of resumeapp; run them with `make test`."""
