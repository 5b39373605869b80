"""Which votes meet which rules: one vote counts for one place of one rule, and the order of voting doesn't matter. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from ledger.domain.authority import Rule

Groups = frozenset[str]


def missing(rules: Sequence[Rule], votes: Mapping[UUID, Groups]) -> list[int]:
    """How many votes each rule still lacks when as many places as possible are filled.

    `votes` are the approving people with their groups. A maximum matching of people to places by augmenting paths (Berge 1957). Where several
    matchings are as large, earlier rules are filled first.
    """
    places = [index for index, rule in enumerate(rules) for _ in range(rule.quorum)]
    holder: dict[int, UUID] = {}
    for voter in sorted(votes):
        _place(voter, votes, rules, places, holder, set())
    lacking = [rule.quorum for rule in rules]
    for place in holder:
        lacking[places[place]] -= 1
    return lacking


def reached(rules: Sequence[Rule], votes: Mapping[UUID, Groups]) -> bool:
    """Is every place of every rule filled? No rules is never enough."""
    return bool(rules) and not any(missing(rules, votes))


def counts(rules: Sequence[Rule], groups: Groups) -> bool:
    """Could a vote of somebody in these groups count for any rule? An empty group means nobody."""
    return any(rule.group and rule.group in groups for rule in rules)


def _place(
    voter: UUID,
    votes: Mapping[UUID, Groups],
    rules: Sequence[Rule],
    places: Sequence[int],
    holder: dict[int, UUID],
    tried: set[int],
) -> bool:
    for place, rule in enumerate(places):
        group = rules[rule].group
        if place in tried or not group or group not in votes[voter]:
            continue
        tried.add(place)
        if place not in holder or _place(holder[place], votes, rules, places, holder, tried):
            holder[place] = voter
            return True
    return False
