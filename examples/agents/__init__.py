"""Agents as users write them. They import the client and nothing else of this repository."""
