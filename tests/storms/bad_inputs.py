"""Bad inputs: no call of the API and no page of the console answers them with a 5xx, and what is refused changes no row."""

import time
from collections import Counter

from tests.crash.processes import Gone
from tests.storms.ground import Ground
from tests.storms.report import Failure, Outcome

PROCESSES = 2


def storm(ground: Ground, inputs: int, seed: int = 1) -> Outcome:
    """At least so many inputs, over all calls of the API's own document; each process has a database of its own."""
    began = time.monotonic()
    names = [ground.take() for _ in range(PROCESSES)]
    share = -(-inputs // PROCESSES)
    senders = [
        ground.inside(name).start(
            "tests.storms.hostile:work",
            {
                "key": ground.tenant["key"],
                "email": ground.tenant["email"],
                "seed": seed * PROCESSES + number,
                "count": share + share // 10,
            },
        )
        for number, name in enumerate(names)
    ]
    counted: Counter[str] = Counter()
    failures, sent = [], 0
    for sender in senders:
        try:
            said = sender.wait_for("done", 120 + inputs * 0.2)
            counted.update(said["counted"])
            sent += said["sent"]
            failures += [Failure(seed, text) for text in said["failures"]]
        except Gone as gone:
            failures.append(Failure(seed, f"{gone}: {sender.log.read_text()[-800:]}"))
        finally:
            sender.close()
    failures += [Failure(seed, f"CHAIN: {fault}") for name in names for fault in ground.verify(name)]
    if sent < inputs and not failures:
        failures.append(Failure(seed, f"only {sent} of {inputs} were sent"))
    if inputs >= 1_000 and not (counted["2xx"] and counted["4xx"] > sent // 3):
        failures.append(Failure(seed, f"the inputs were not what they should be: {dict(counted)}"))
    ground.kept = ground.kept or bool(failures)
    return Outcome("inputs", sent, time.monotonic() - began, counted, failures)
