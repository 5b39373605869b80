"""Votes are matched to rules so that as many places as possible are filled, in whatever order they came."""

from __future__ import annotations

from itertools import permutations
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from approvals.domain.quorum import counts, missing, reached
from ledger.domain.authority import Rule, Verdict

GROUPS = ("a", "b", "c", "")
rules_of = st.lists(
    st.builds(
        Rule,
        tool=st.just("*"),
        verdict=st.just(Verdict.APPROVE),
        group=st.sampled_from(GROUPS),
        quorum=st.integers(1, 2),
    ),
    max_size=3,
)
votes_of = st.dictionaries(
    st.integers(1, 5).map(lambda number: UUID(int=number)), st.frozensets(st.sampled_from(GROUPS)), max_size=5
)


def rule(group: str, quorum: int = 1) -> Rule:
    return Rule("*", Verdict.APPROVE, group, quorum)


def people(*groups: str) -> dict[UUID, frozenset[str]]:
    return {UUID(int=number): frozenset(names) for number, names in enumerate(groups, 1)}


def best_by_trying_all(rules: list[Rule], votes: dict[UUID, frozenset[str]]) -> int:
    """The most places that can be filled: every order of people to every place, one each."""
    places = [each.group for each in rules for _ in range(each.quorum)]
    seats = [*votes, *([None] * len(places))]
    best = 0
    for order in set(permutations(seats, len(places))):
        pairs = zip(places, order, strict=True)
        best = max(best, sum(1 for group, voter in pairs if voter and group and group in votes[voter]))
    return best


@given(
    rules_of.filter(lambda rules: sum(each.quorum for each in rules) <= 4),
    votes_of.filter(lambda votes: len(votes) <= 4),
)
def test_as_many_places_are_filled_as_trying_everything_finds(
    rules: list[Rule], votes: dict[UUID, frozenset[str]]
) -> None:
    places = sum(each.quorum for each in rules)
    assert places - sum(missing(rules, votes)) == best_by_trying_all(rules, votes)
    assert reached(rules, votes) == (bool(rules) and best_by_trying_all(rules, votes) == places)


@given(rules_of, votes_of, st.randoms())
def test_the_order_of_votes_changes_nothing(
    rules: list[Rule], votes: dict[UUID, frozenset[str]], random: object
) -> None:
    shuffled = list(votes.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert missing(rules, dict(shuffled)) == missing(rules, votes)


@given(rules_of, votes_of, st.frozensets(st.sampled_from(GROUPS)))
def test_one_more_vote_never_lacks_more(
    rules: list[Rule], votes: dict[UUID, frozenset[str]], groups: frozenset[str]
) -> None:
    more = {**votes, UUID(int=99): groups}
    assert sum(missing(rules, votes)) - 1 <= sum(missing(rules, more)) <= sum(missing(rules, votes))


def test_one_vote_counts_for_one_rule() -> None:
    both = [rule("a"), rule("b")]
    assert not reached(both, people("ab"))
    assert reached(both, people("ab", "a")) and reached(both, people("a", "ab"))
    assert not reached(both, people("a", "a"))


def test_an_empty_group_means_nobody() -> None:
    assert not reached([rule("")], {UUID(int=1): frozenset({"", "a"})})
    assert not counts([rule("")], frozenset({""})) and not counts([], frozenset({"a"}))


def test_no_rules_are_never_enough() -> None:
    assert not reached([], people("a"))
