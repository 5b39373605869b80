"""Composition root: settings, URLs, health and the processes. Imports all, imported by none."""
