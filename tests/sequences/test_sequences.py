"""Model-based sequences through the real services: 500 of 50 steps on SQLite, 40 on PostgreSQL, where each statement is a round trip and the soak
plays the rest. `SEQUENCES` and `SEQUENCES_SEED` are others."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.database import chosen
from tests.sequences.frozen import frozen_clock
from tests.sequences.machine import Sequence
from tests.sequences.shop import serving
from tests.sequences.stage import Stage

SEQUENCES = int(os.environ.get("SEQUENCES", "500" if chosen() == "sqlite" else "40"))
SHARDS = 2 if SEQUENCES >= 200 else 1
SEED = int(os.environ.get("SEQUENCES_SEED", "0"))
STEPS = 50
PLAYED = settings(
    max_examples=SEQUENCES // SHARDS,
    stateful_step_count=STEPS,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
REACHED = {
    "claim",
    "permit",
    "settle committed",
    "settle unknown",
    "lapse",
    "wake",
    "look absent",
    "decide approve",
    "commit wait",
    "call applied",
    "policy moves",
    "leaves team",
    "key revoked",
    "target moves",
    "vote withdrawn",
    "permit: key-revoked",
    "permit: policy-denies",
    "permit: grant-void",
    "permit: changed",
}
"""Steps that every shard takes many times: without them its sequences never came to where it matters."""
REACHED_SOON = {
    "claim",
    "permit",
    "wake",
    "decide approve",
    "look absent",
    "settle committed",
    "policy moves",
    "leaves team",
    "key revoked",
    "target moves",
    "permit: key-revoked",
}
"""The same of a few sequences."""


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_whatever_the_sequence_nothing_is_lost_repeated_or_left_without_a_way_out(shard: int, committed: None) -> None:
    with frozen_clock() as clock, serving() as target:
        Sequence.stage, Sequence.taken, Sequence.clock = Stage(target), Counter(), clock
        # Without one, a run in CI draws from the test's name, and all shards play the same.
        run_state_machine_as_test(seed(SEED + shard)(Sequence), settings=PLAYED)
    print(
        f"shard {shard} of seed {SEED}:", ", ".join(f"{step} {count}" for step, count in sorted(Sequence.taken.items()))
    )
    least = (REACHED if SEQUENCES // SHARDS >= 100 else REACHED_SOON) if SEQUENCES // SHARDS >= 10 else set()
    assert Sequence.taken.keys() >= least, sorted(least - Sequence.taken.keys())
