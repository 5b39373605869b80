"""Pictures of every page for people to look at: `make shots` makes its own data and server, and writes `var/shots/`."""
