"""The shapes of the contract: models of what comes in, and how rows are written into answers."""
