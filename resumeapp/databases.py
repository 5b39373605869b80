"""How each kind of process connects: full durability, time-outs at both ends, no shared sockets."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import dj_database_url
from psycopg import _queries as conversions

from resumeapp.postgres.connection import Patient

# Seconds a connection is kept; None keeps it. A pool in a forking cluster corrupts connections,
# and kept connections under ASGI leak until the server refuses.
_KEEP: Final[dict[str, int | None]] = {"web": None, "asgi": 0, "cluster": 60, "timer": 60}

SILENCE: Final = timedelta(seconds=5)
"""So long after a statement's time-out a client waits for the server to say so; then it takes the other end for dead."""

_SQLITE_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON"
)


def _remember_long_statements() -> None:
    """Let the driver keep how it converted our statements to its own placeholders, as it does with short ones.

    By default it keeps none of more than 4,096 characters or 50 parameters, and splitting such a one each time costs more CPU than sending it.
    The 128 used last are kept, whatever their length. The driver has no public setting for this; a test fails when its names change.
    """
    conversions.MAX_CACHED_STATEMENT_LENGTH = 32_768
    conversions.MAX_CACHED_STATEMENT_PARAMS = 1_000


def process_kinds() -> tuple[str, ...]:
    """The kinds of process that connections are tuned for."""
    return tuple(_KEEP)


def database(url: str, sqlite: Path, process: str, statement_timeout: timedelta) -> dict[str, Any]:
    """Django's settings of the one database: PostgreSQL by `url`, else SQLite at `sqlite`.

    Raises ValueError, without the URL in it, when `url` isn't a PostgreSQL address.
    """
    if not url:
        return _sqlite(sqlite)
    if not url.startswith(("postgres://", "postgresql://")):
        raise ValueError("expected postgres://user@host:port/name, or nothing for SQLite")
    try:
        parsed: dict[str, Any] = dict(dj_database_url.parse(url))
    except (ValueError, KeyError):
        raise ValueError("expected postgres://user@host:port/name") from None
    return _postgres(parsed, process, statement_timeout)


def _sqlite(path: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": _SQLITE_PRAGMAS,
        },
    }


def _postgres(parsed: dict[str, Any], process: str, statement_timeout: timedelta) -> dict[str, Any]:
    _remember_long_statements()
    options = dict(parsed.get("OPTIONS", {}))
    milliseconds = int(statement_timeout.total_seconds() * 1000)
    server = (
        "-c synchronous_commit=on -c default_transaction_isolation=read\\ committed "
        "-c idle_in_transaction_session_timeout=30s "
        f"-c statement_timeout={milliseconds} -c tcp_user_timeout=30s"
    )
    # What the operator wrote comes last and wins; system checks refuse less durability.
    options["options"] = f"{server} {options.get('options', '')}".strip()
    options |= {
        "server_side_binding": True,
        "prepare_threshold": 3,
        "connect_timeout": 10,
        "keepalives": 1,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "application_name": f"resumeapp-{process}",
    }
    if statement_timeout:
        options["patience"] = (statement_timeout + SILENCE).total_seconds()
    if process == "asgi":
        options["pool"] = {"min_size": 1, "max_size": 16, "timeout": 10, "connection_class": Patient}
    return parsed | {
        "ENGINE": "resumeapp.postgres",
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": _KEEP.get(process, 60),
        "CONN_HEALTH_CHECKS": process != "asgi",
        "OPTIONS": options,
    }
