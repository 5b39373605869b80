"""Which versions may go on from a checkpoint, which one is current, and what a checkpoint's digest covers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from ledger.domain.checkpoints import (
    CheckpointFields,
    CheckpointKind,
    VersionRow,
    accepted_versions,
    checkpoint_digest,
    current_version,
)
from ledger.domain.runs import Fence


def version(name: str, *takes_over_from: str) -> VersionRow:
    return VersionRow(uuid4(), name, {}, "a", {"a": {}}, list(takes_over_from), b"")


def test_a_checkpoint_goes_to_its_own_version_and_to_those_that_take_over_from_it() -> None:
    versions = [version("3"), version("2", "1"), version("1")]
    assert accepted_versions(versions, "1") == ("1", "2")
    assert accepted_versions(versions, "3") == ("3",)
    assert accepted_versions(versions, "0") == ()


def test_the_version_that_takes_over_is_current_whoever_registered_last() -> None:
    assert current_version([version("1"), version("2", "1")]) == "2"
    assert current_version([version("2", "1"), version("1")]) == "2"


def test_of_versions_that_nobody_takes_over_from_the_last_registered_is_current() -> None:
    assert current_version([version("3"), version("2", "1"), version("1")]) == "3"
    assert current_version([]) == ""


def test_of_versions_that_take_over_from_each_other_the_last_registered_is_current() -> None:
    assert current_version([version("2", "1"), version("1", "2")]) == "2"
    assert current_version([version("1", "2"), version("2", "1")]) == "1"
    assert current_version([version("3", "2"), version("2", "1"), version("1", "3", "0")]) == "3"
    assert current_version([version("2", "1"), version("1", "2"), version("3", "2")]) == "3", (
        "nothing takes over from it"
    )


FIELDS = CheckpointFields(
    run_id=uuid4(),
    seq=3,
    kind=CheckpointKind.COMMIT,
    previous_digest=b"p" * 32,
    last_transition="assess",
    next_transition="issue",
    instance_id=uuid4(),
    version="1",
    code_version="code",
    fence=Fence(0, 2),
    state_commitment=b"s" * 32,
    artifacts=("a",),
)
OTHERS: dict[str, Any] = {
    "run_id": uuid4(),
    "seq": 4,
    "kind": CheckpointKind.END,
    "previous_digest": b"q" * 32,
    "last_transition": "issue",
    "next_transition": "assess",
    "instance_id": uuid4(),
    "version": "2",
    "code_version": "other",
    "fence": Fence(1, 2),
    "state_commitment": b"t" * 32,
    "artifacts": ("a", "b"),
}


@pytest.mark.parametrize("field", OTHERS)
def test_every_field_of_a_checkpoint_changes_its_digest(field: str) -> None:
    assert set(OTHERS) == set(CheckpointFields.__dataclass_fields__)
    salt = bytes(16)
    assert checkpoint_digest(replace(FIELDS, **{field: OTHERS[field]}), salt) != checkpoint_digest(FIELDS, salt)


def test_one_checkpoint_has_another_digest_under_another_salt() -> None:
    assert checkpoint_digest(FIELDS, bytes(16)) != checkpoint_digest(FIELDS, b"s" * 16)
