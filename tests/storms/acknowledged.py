"""Is each acknowledged write in the record, by its key and as it was answered, and does each chain hash? By plain SELECTs, without the product."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.crash.judge import Trial, chain
from tests.crash.witnesses import Record, read_facts


def absent(record: Record, places: Iterable[Path]) -> tuple[int, list[str]]:
    """How many acknowledgements these files hold, and those of them of which nothing is there."""
    runs = {(row["id"], row["idempotency_key"]) for row in record.rows("ledger_run", "true")}
    checkpoints = {
        (row["run_id"], row["seq"], row["digest"].hex(), row["idempotency_key"])
        for row in record.rows("ledger_checkpoint", "true")
    }
    effects = {(row["id"], row["run_id"]) for row in record.rows("ledger_effect", "true")}
    events = {row["event_id"] for row in record.rows("ledger_event", "true")}

    def there(ack: dict[str, Any]) -> bool:
        match ack["kind"]:
            case "run":
                return (ack["run"], ack["key"]) in runs
            case "checkpoint":
                return (ack["run"], ack["seq"], ack["digest"], ack["key"]) in checkpoints
            case "effect":
                return (ack["effect"], ack["run"]) in effects
            case "event":
                return ack["id"] in events
            case _:
                return False

    texts = [text for place in places for text in place.read_text().splitlines()]
    return len(texts), [text for text in texts if not there(json.loads(text))]


def broken(record: Record) -> tuple[int, list[str]]:
    """How many runs there are, and what is wrong with their entries, heads and checkpoints, hashed anew."""
    found = []
    runs = [row["id"] for row in record.rows("ledger_run", "true")]
    for run in runs:
        facts = read_facts(record, run)
        if facts.head is None or not facts.entries:
            found.append(f"run {run} has no head or no entry")
            continue
        found += [f"run {run}: {text}" for _, text in chain(Trial(run, run, "", 0.0, [], 0.0), facts)]
    return len(runs), found
