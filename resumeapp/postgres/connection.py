"""Connections that bound how long the other end may be silent.

The server ends a statement that lasts too long, and the kernel a connection whose other end is gone. A peer that is there, takes everything and
never answers (a server that was stopped, a proxy that lost its other side) trips neither of them: only who waits can give up.
"""

from typing import Any, Self

import psycopg


class Patient(psycopg.Connection[Any]):
    """A connection that is closed, with psycopg's OperationalError, when one wait for its other end lasts longer than `patience` seconds."""

    patience: float | None = None

    @classmethod
    def connect(cls, conninfo: str = "", **options: Any) -> Self:
        """As psycopg's, which bounds connecting itself by `connect_timeout`; without `patience` it waits for ever afterwards."""
        patience = options.pop("patience", None)
        made = super().connect(conninfo, **options)
        made.patience = patience
        return made

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As psycopg's; what bounds itself (waiting for notices) keeps its own time."""
        if timeout is not None or self.patience is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.patience)
        except psycopg.errors._WaitTimeout:
            # Whether the statement was carried out can't be known, and its answer must not be taken for the next one's.
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the database was silent for {self.patience:g} s") from None
