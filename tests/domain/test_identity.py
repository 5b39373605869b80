"""What narrows a key: the workflow types that it is for, and the events that it may emit."""

from __future__ import annotations

from uuid import uuid4

import pytest

from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Emit, Scope, check_emits, check_workflows

EMITTER = [Scope.EVENTS_EMIT]


def key(*workflows: str, emits: tuple[Emit, ...] = ()) -> Caller:
    return Caller(uuid4(), "agent:x", key_id=uuid4(), workflows=frozenset(workflows), emits=emits)


@pytest.mark.parametrize(
    ("type_", "source"),
    [
        ("order.paid", "https://shop.example/"),
        ("order.pai", "https://shop.example"),
        ("order.paid.twice", "https://shop.example"),
        ("Order.paid", "https://shop.example"),
        ("order.paid", "https://shop"),
        ("", ""),
        ("*", "*"),
    ],
)
def test_what_a_pattern_doesn_t_cover_is_refused_with_the_command_that_gives_leave(type_: str, source: str) -> None:
    with pytest.raises(LedgerError) as refusal:
        key(emits=(Emit("order.paid", "https://shop.example"),)).needs_emit(type_, source)
    assert refusal.value.code == "event-not-allowed" and refusal.value.status == 403
    assert "create_key" in refusal.value.remedy and "--emit" in refusal.value.remedy
    assert refusal.value.facts == {}


def test_a_key_without_leave_emits_nothing() -> None:
    with pytest.raises(LedgerError, match="event-not-allowed"):
        key().needs_emit("order.paid", "https://shop.example")


def test_type_and_source_of_one_leave_have_to_fit_together() -> None:
    caller = key(emits=(Emit("order.*", "/shop"), Emit("wire.*", "/bank/*")))
    caller.needs_emit("order.paid", "/shop")
    caller.needs_emit("wire.", "/bank/7")
    for type_, source in (("order.paid", "/bank/7"), ("wire.sent", "/shop"), ("wire.sent", "/bank")):
        with pytest.raises(LedgerError, match="event-not-allowed"):
            caller.needs_emit(type_, source)


@pytest.mark.parametrize("pattern", ["", "*.paid", "order.*.paid", "**", "x" * 201])
def test_a_pattern_that_isn_t_exact_or_a_beginning_is_refused(pattern: str) -> None:
    for emit in (Emit(pattern, "/shop"), Emit("order.paid", pattern)):
        with pytest.raises(LedgerError, match="invalid"):
            check_emits([emit], EMITTER)


def test_leave_to_emit_without_the_scope_is_refused() -> None:
    with pytest.raises(LedgerError, match="invalid"):
        check_emits([Emit("*", "*")], [Scope.RUNS_READ])
    assert check_emits([Emit("*", "/shop")] * 2, EMITTER) == [{"type": "*", "source": "/shop"}]
    assert check_emits([], EMITTER) == []


@pytest.mark.parametrize("names", [[], ["*", "refund"], ["refund*"], ["Refund"], [""], [f"w{n}" for n in range(51)]])
def test_workflow_types_of_a_key_are_said_and_are_names_or_all(names: list[str]) -> None:
    with pytest.raises(LedgerError) as refusal:
        check_workflows(names)
    assert refusal.value.code == "invalid" and refusal.value.remedy


def test_a_key_reaches_its_own_types_only_and_a_caller_without_a_key_is_narrowed_by_nothing() -> None:
    assert check_workflows(["wire", "refund", "wire"]) == ["refund", "wire"]
    caller = key("refund")
    assert caller.reaches("refund") and not caller.reaches("wire") and not key().reaches("refund")
    caller.needs_workflow("refund")
    with pytest.raises(LedgerError) as refusal:
        caller.needs_workflow("wire")
    assert refusal.value.code == "workflow-not-allowed" and "--workflow" in refusal.value.remedy
    assert key("*").reaches("wire") and Caller(uuid4(), "person:x", person_id=uuid4()).reaches("wire")
