"""A silent target is left alone for a while, and then asked once."""

from __future__ import annotations

from uuid import uuid4

from ledger.targets.breakers import PAUSE, SILENCES, Breakers

SHOP, OTHER = uuid4(), uuid4()


def opened() -> Breakers:
    """A breaker that has opened at 100."""
    breakers = Breakers()
    for _ in range(SILENCES):
        assert breakers.allows(SHOP, 100.0)
        breakers.silent(SHOP, 100.0)
    return breakers


def test_a_target_that_was_silent_often_enough_is_not_asked_and_others_are() -> None:
    breakers = opened()
    assert not breakers.allows(SHOP, 100.0 + PAUSE - 0.1) and breakers.allows(OTHER, 100.0)


def test_one_question_finds_out_whether_it_answers_again() -> None:
    breakers = opened()
    later = 100.0 + PAUSE
    assert [breakers.allows(SHOP, later) for _ in range(3)] == [True, False, False]
    breakers.silent(SHOP, later + 10)
    assert not breakers.allows(SHOP, later + PAUSE) and breakers.allows(SHOP, later + 10 + PAUSE)


def test_an_answer_closes_it_and_only_silences_in_a_row_open_it() -> None:
    breakers = opened()
    assert breakers.allows(SHOP, 100.0 + PAUSE)
    breakers.answered(SHOP)
    assert all(breakers.allows(SHOP, 100.0 + PAUSE) for _ in range(3))
    for _ in range(SILENCES):
        breakers.silent(SHOP, 200.0)
        breakers.answered(SHOP)
    assert breakers.allows(SHOP, 200.0)
