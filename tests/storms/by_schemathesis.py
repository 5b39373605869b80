"""A process that serves the product and has schemathesis send to it what it makes of the product's own document: what the document allows and what it
forbids, by its boundaries and by chance, and calls that go on from what others answered. As an agent, an operator, a signed-in person, and nobody."""

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import schemathesis
from django.conf import settings as django
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import BaseSchema, GenerationMode, Response
from schemathesis.generation.case import Case

from tests.crash.points import Line
from tests.crash.servers import application, serve
from tests.postgres import free_port
from tests.storms.judged import Judge

STEPS = 10
"""Calls of a sequence, at most."""
PARTS = {"boundaries": 4, "by chance": 4, "sequences": 2}
"""Of ten requests."""


class _Started(Line):
    """The served product's own line: nobody else is told."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def say(self, kind: str, **fields: Any) -> None:
        self.event.set()


def _serve() -> str:
    """The product on a loopback port, by one thread of this process; answers its address."""
    port, started = free_port(), _Started()
    threading.Thread(target=serve, args=(port, 1, application, started), daemon=True).start()
    assert started.event.wait(30)
    return f"http://127.0.0.1:{port}"


def _document(host: str) -> BaseSchema:
    """As the product hands it out. Who calls is this storm's to say, and any refusal refuses."""
    found = schemathesis.openapi.from_url(f"{host}/api/v1/openapi.json", config=schemathesis.Config())
    found.config.generation.with_security_parameters = False
    found.config.checks.negative_data_rejection.expected_statuses = ["4xx"]
    return found


def _plan(count: int, **more: Any) -> settings:
    return settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        **more,
    )


def _boundaries(document: BaseSchema, judge: Judge, chance: Random, count: int) -> None:
    """The cases that schemathesis collects of each call's document: each keyword met and missed, each field left out, methods that aren't there."""
    share = -(-count // len(list(document.get_all_operations())))
    spare: list[Case] = []
    for operation in document.get_all_operations():
        called = operation.ok()
        generation = document.config.generation_for(operation=called)
        cases = list(
            document.iter_coverage_cases(called, generation_modes=list(GenerationMode), generation_config=generation)
        )
        chance.shuffle(cases)
        spare += cases[share:]
        for case in cases[:share]:
            judge.aim(case)
            judge.send(case, "boundaries")
    chance.shuffle(spare)
    for case in spare[: max(0, count - judge.counted["boundaries"])]:
        judge.aim(case)
        judge.send(case, "boundaries")


def _by_chance(document: BaseSchema, judge: Judge, count: int, number: int) -> None:
    """As many that the document allows as ones that it forbids, of each call."""
    operations = [operation.ok() for operation in document.get_all_operations()]
    share = -(-count // (2 * len(operations)))
    for at, operation in enumerate(operations):
        for mode in GenerationMode:
            if mode is GenerationMode.NEGATIVE and not (list(operation.iter_parameters()) or operation.body):
                continue

            @seed(number + 2 * at + (mode is GenerationMode.NEGATIVE))
            @_plan(share)
            @given(operation.as_strategy(generation_mode=mode))
            def one(case: Case) -> None:
                judge.aim(case)
                judge.send(case, "by chance")

            try:
                one()
            except Unsatisfiable:
                print("UNSAT", operation.label, mode, flush=True)
                judge.counted["nothing to forbid"] += 1


def _sequences(document: BaseSchema, judge: Judge, count: int, number: int) -> None:
    """Calls that go on with ids that others answered: the document has no links, schemathesis infers them from its shapes."""

    class Sequence(document.as_state_machine()):  # type: ignore[misc]
        def step(self, input: Any) -> Any:
            if judge.counted["sequences"] >= count:
                return None
            return super().step(input)

        def call(self, case: Case, **kwargs: Any) -> Response:
            judge.aim(case)
            return judge.send(case, "sequences", "agent")

        def validate_response(self, response: Response, case: Case, **kwargs: Any) -> None:
            """The judge has done so."""

    run_state_machine_as_test(
        seed(number)(Sequence), settings=_plan(count // STEPS + 1, stateful_step_count=STEPS), _min_steps=2
    )


def work(args: dict[str, Any], report: int, control: int) -> None:
    """The role: so many requests, a part of each kind."""
    line = Line(report, control)
    # Rows change by what is sent here, and by nothing that goes on beside it.
    django.RESUMEAPP_HINTS = False
    host = _serve()
    chance = Random(args["seed"])
    judge = Judge(host, args["key"], args["email"], chance)
    document = _document(host)
    count, number = args["count"], args["seed"] * 1_000
    parts: dict[str, Callable[[int], None]] = {
        "boundaries": lambda share: _boundaries(document, judge, chance, share),
        "by chance": lambda share: _by_chance(document, judge, share, number),
        "sequences": lambda share: _sequences(document, judge, share, number),
    }
    for name, part in parts.items():
        part(-(-count * PARTS[name] // sum(PARTS.values())))
    line.say(
        "done",
        sent=judge.sent,
        counted={**judge.counted, "seconds of CPU": round(time.process_time())},
        failures=[text[:900] for text in judge.failures[: args.get("shown", 5)]],
    )
