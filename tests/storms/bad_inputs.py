"""Bad inputs, by two generators: no call of the API and no page of the console answers them with a 5xx, and what is refused changes no row."""

import time
from collections import Counter

from tests.crash.processes import Gone
from tests.storms.ground import Ground
from tests.storms.report import Failure, Outcome

PROCESSES = 2


def storm(ground: Ground, inputs: int, seed: int = 1) -> Outcome:
    """At least so many inputs of our own generator, over all calls of the API's document and all pages."""
    outcome = _sent_by("inputs", "tests.storms.hostile:work", ground, inputs, seed)
    counted = outcome.counted
    if inputs >= 1_000 and not (counted["2xx"] and counted["4xx"] > outcome.trials // 3):
        outcome.failures.append(Failure(seed, f"the inputs were not what they should be: {counted}"))
    return outcome


def by_schemathesis(ground: Ground, inputs: int, seed: int = 1) -> Outcome:
    """At least so many requests that schemathesis makes of the API's document, over HTTP."""
    outcome = _sent_by("schemathesis", "tests.storms.by_schemathesis:work", ground, inputs, seed)
    counted = outcome.counted
    kinds = ("boundaries", "by chance", "sequences")
    some = all(counted[kind] >= inputs // 10 for kind in kinds)
    if inputs >= 1_000 and not (
        some and counted["wrote"] and counted["2xx"] > inputs // 20 and counted["4xx"] > inputs // 3
    ):
        outcome.failures.append(Failure(seed, f"the requests were not what they should be: {counted}"))
    return outcome


def _sent_by(storm: str, role: str, ground: Ground, inputs: int, seed: int) -> Outcome:
    """What the role's processes sent and found, each in a database of its own."""
    began = time.monotonic()
    names = [ground.take() for _ in range(PROCESSES)]
    share = -(-inputs // PROCESSES)
    senders = [
        ground.inside(name).start(
            role,
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
    ground.kept = ground.kept or bool(failures)
    return Outcome(storm, sent, time.monotonic() - began, counted, failures)
