"""Faults from outside, many of each, on PostgreSQL. What is found prints its seed and the line that makes it happen again."""

from collections.abc import Iterator

import pytest

from tests.storms.__main__ import STORMS
from tests.storms.ground import Ground
from tests.storms.report import CI, Failure, Outcome, wanted

SPOILT = 100
"""Requests to a product with faults: each of its calls has some of what the document allows and some of what it forbids."""
pytestmark = [pytest.mark.storm, pytest.mark.slow]


@pytest.fixture(scope="session")
def ground() -> Iterator[Ground]:
    """One server with a migrated template; each storm takes databases of its own from it."""
    with Ground() as ground:
        yield ground


def weathered(outcome: Outcome, at_least: int) -> None:
    """Nothing was found, in as many trials as were asked for."""
    print(outcome.text())
    assert not outcome.failures, outcome.text()
    assert outcome.trials >= at_least, outcome.text()


def test_a_failure_is_shown_with_its_seed_and_the_line_that_makes_it_happen_again() -> None:
    found = Outcome("faults", 40, 1.0, {}, [Failure(7, "LOST it", "--only slow")])
    assert "python -m tests.storms faults --seed 7 --only slow" in found.text() and "bounds" not in found.text()
    found = Outcome("kills", 3, 1.0, {}, [Failure(0, "LOST it")], seed=0, asked=3)
    assert found.text().count("python -m tests.storms kills --seed 0 --trials 3") == 2
    assert "bounds its rate at about 0.075, no lower" in Outcome("faults", 40, 1.0).text()


def test_at_every_boundary_of_a_run_somebody_else_finishes_what_broke(ground: Ground) -> None:
    passes = wanted("boundaries")
    outcome = STORMS["boundaries"](ground, passes)
    weathered(outcome, 160 * passes)
    boundaries, statements = int(str(outcome.counted["boundaries"])), int(str(outcome.counted["statements"]))
    assert outcome.trials == passes * (2 * boundaries + statements), "a kill and an error of each, before and after it"


def test_cut_connections_to_the_database_lose_and_repeat_nothing(ground: Ground) -> None:
    weathered(STORMS["cuts"](ground, wanted("cuts")), wanted("cuts"))


def test_workers_that_come_back_after_they_were_replaced_change_nothing(ground: Ground) -> None:
    weathered(STORMS["zombies"](ground, wanted("zombies")), wanted("zombies"))


def test_an_event_and_a_wait_meet_once_however_they_come(ground: Ground) -> None:
    weathered(STORMS["meetings"](ground, wanted("meetings")), wanted("meetings"))


def test_whatever_a_target_answers_at_most_one_change_is_made_and_the_ledger_knows(ground: Ground) -> None:
    weathered(STORMS["faults"](ground, wanted("faults")), 14 * wanted("faults"))


def test_bad_inputs_are_refused_and_leave_no_part_of_a_row(ground: Ground) -> None:
    weathered(STORMS["inputs"](ground, wanted("inputs")), wanted("inputs"))


def test_what_schemathesis_makes_of_the_document_is_answered_as_the_document_says_and_leaves_no_part_of_a_row(
    ground: Ground,
) -> None:
    weathered(STORMS["schemathesis"](ground, wanted("schemathesis")), wanted("schemathesis"))


def test_each_kind_of_fault_in_an_answer_is_found_of_what_schemathesis_sends(ground: Ground) -> None:
    args = {"key": ground.tenant["key"], "email": ground.tenant["email"], "seed": 1, "count": SPOILT}
    said = ground.inside(ground.take()).run("tests.storms.by_schemathesis:work_spoilt", args)
    assert said["failures"] == [] and said["sent"] >= SPOILT // 2, said


def test_the_bad_inputs_of_both_generators_are_five_thousand() -> None:
    assert CI["inputs"] + CI["schemathesis"] >= 5_000


def test_a_database_server_that_is_killed_again_and_again_keeps_what_it_acknowledged(ground: Ground) -> None:
    weathered(STORMS["kills"](ground, wanted("kills")), wanted("kills"))
