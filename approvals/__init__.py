"""The console and the rules for people: requests, votes and every page."""
