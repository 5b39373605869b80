"""A process that serves the product and has schemathesis send to it what it makes of the product's own document: what the document allows and what it
forbids, by its boundaries and by chance, and calls that go on from what others answered. As an agent, an operator, a signed-in person, and nobody."""

import contextlib
import threading
import time
from collections.abc import Collection
from random import Random
from typing import Any

import schemathesis
from django.conf import settings as django
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import APIOperation as Operation
from schemathesis import BaseSchema, GenerationMode, Response
from schemathesis.generation.case import Case

from tests.crash.points import Line
from tests.crash.servers import application, serve
from tests.postgres import free_port
from tests.storms.judged import Judge
from tests.storms.spoilt import FAULTS, spoil

STEPS = 10
"""Calls of a sequence, at most."""
PLAYED = 4
"""Sequences of one seed."""
PARTS = {"boundaries": 4, "by chance": 4, "sequences": 2}
"""Of ten requests."""


class _Started(Line):
    """The served product's own line: nobody else is told."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def say(self, kind: str, **fields: Any) -> None:
        self.event.set()


def _serve(answering: Any) -> str:
    """An application on a loopback port, by one thread of this process; answers its address."""
    port, started = free_port(), _Started()
    threading.Thread(target=serve, args=(port, 1, answering, started), daemon=True).start()
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


def _boundaries(document: BaseSchema, operations: list[Operation], judge: Judge, chance: Random, count: int) -> None:
    """The cases that schemathesis collects of each call's document: each keyword met and missed, each field left out, methods that aren't there."""
    share = -(-count // len(operations))
    spare: list[Case] = []
    for operation in operations:
        generation = document.config.generation_for(operation=operation)
        modes = list(GenerationMode)
        cases = list(document.iter_coverage_cases(operation, generation_modes=modes, generation_config=generation))
        chance.shuffle(cases)
        spare += cases[share:]
        for case in cases[:share]:
            judge.aim(case)
            judge.send(case, "boundaries")
    chance.shuffle(spare)
    for case in spare[: max(0, count - judge.counted["boundaries"])]:
        judge.aim(case)
        judge.send(case, "boundaries")


def _by_chance(operations: list[Operation], judge: Judge, count: int, number: int) -> None:
    """As many that the document allows as ones that it forbids, of each call."""
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

            one()


def _sequences(document: BaseSchema, judge: Judge, count: int, number: int) -> None:
    """Calls that go on with ids that others answered: the document has no links, schemathesis infers them from its shapes."""

    class Sequence(document.as_state_machine()):  # type: ignore[misc]
        def step(self, input: Any) -> Any:
            if input.transition is None:
                judge.aim(input.case)
            return super().step(input)

        def call(self, case: Case, **kwargs: Any) -> Response:
            return judge.send(case, "sequences", "agent") or reject()

        def validate_response(self, response: Response, case: Case, **kwargs: Any) -> None:
            """The judge has done so."""

    for round_ in range(count):
        if judge.counted["sequences"] >= count:
            break
        # What a sequence may do next depends on answers, and the record isn't set back for each: hypothesis can't play one twice.
        with contextlib.suppress(Flaky):
            run_state_machine_as_test(
                seed(number + round_)(Sequence), settings=_plan(PLAYED, stateful_step_count=STEPS), _min_steps=2
            )


class _Storm:
    """One process's document, judge and seeds."""

    def __init__(self, args: dict[str, Any], answering: Any) -> None:
        # Rows change by what is sent here, and by nothing that goes on beside it.
        django.RESUMEAPP_HINTS = False
        host = _serve(answering)
        self._count, self._number = args["count"], args["seed"] * 1_000
        self._chance = Random(args["seed"])
        self.judge = Judge(host, args["key"], args["email"], self._chance)
        self._document = _document(host)
        self._operations = [operation.ok() for operation in self._document.get_all_operations()]

    def rage(self, only: Collection[str] = ()) -> None:
        """Of each kind its part; the single calls are `only` these, where any are named."""
        operations = [each for each in self._operations if not only or each.label in only]
        parts = {kind: -(-self._count * part // sum(PARTS.values())) for kind, part in PARTS.items()}
        _boundaries(self._document, operations, self.judge, self._chance, parts["boundaries"])
        _by_chance(operations, self.judge, parts["by chance"], self._number)
        if not only:
            _sequences(self._document, self.judge, parts["sequences"], self._number)


def work(args: dict[str, Any], report: int, control: int) -> None:
    """The role: so many requests, a part of each kind."""
    storm = _Storm(args, application)
    storm.rage()
    judge = storm.judge
    counted = {**judge.counted, "seconds of CPU": round(time.process_time())}
    Line(report, control).say(
        "done", sent=judge.sent, counted=counted, failures=[text[:700] for text in judge.failures[:5]]
    )


def work_spoilt(args: dict[str, Any], report: int, control: int) -> None:
    """The role: the same to a product with faults; it fails for each of them that wasn't found."""
    storm = _Storm(args, spoil(application))
    storm.rage(FAULTS)
    judge = storm.judge
    missed = [
        call for call, fault in FAULTS.items() if not any(call in text and fault in text for text in judge.failures)
    ]
    Line(report, control).say("done", sent=judge.sent, counted=judge.counted, failures=missed)
