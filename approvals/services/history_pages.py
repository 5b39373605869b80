"""The tenant's history: journal entries newest first, for people with the audit right, searched by actor, verb, run, target and time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet, Subquery, Value

from approvals.labels import VERBS
from approvals.services import actors, entry_lines, newer, verification_pages
from approvals.services.entry_lines import Line
from approvals.services.newer import Moved
from approvals.services.pieces import pretty
from approvals.services.verification_pages import Overview
from approvals.templatetags.console import visible_text as shown
from ledger.domain import journal
from ledger.domain.canonical import parse_time
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.models import Agent, JournalEntry, Run, Target, Tenant, User
from ledger.services import permissions, search

SHOWN = 50
STEP = 500
LAST = 2**62
"""No stream has as many entries."""
MOST_EXPORTED = 20_000
"""Entries of one export: a longer history is exported by its times."""
OFFICE = frozenset(
    ["tenant", "agent", "key", "person", "membership", "team", "permission", "policy", "target", "workflow"]
)
"""What the verbs of administration begin with."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(rf"{_DAY.pattern}(T\d\d:\d\d(:\d\d)?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Filter:
    """What the address asks for: `since` and `until` are days, minutes or seconds in UTC, and whole ones; `before` is the place of the last entry of
    the page before."""

    actor: str = ""
    verb: str = ""
    run: str = ""
    target: str = ""
    since: str = ""
    until: str = ""
    before: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filter:
        names = ("actor", "verb", "run", "target", "since", "until", "before")
        return cls(**{name: query.get(name, "").replace("\x00", "").strip()[:80] for name in names})

    @property
    def first_minute(self) -> str:
        """`since` as a field for a time holds it."""
        return f"{self.since}T00:00" if _DAY.fullmatch(self.since) else self.since

    @property
    def last_minute(self) -> str:
        """`until` as a field for a time holds it."""
        return f"{self.until}T23:59" if _DAY.fullmatch(self.until) else self.until


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry by itself: its bytes set out, the digest of the one before it ('' for the first of its stream), whether another one follows, and
    whether its bytes still hash to its digest."""

    line: Line
    previous: str
    follows: bool
    content: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Exported:
    """A step of an export: lines with the bytes of their entries, and whether older ones follow."""

    lines: tuple[Line, ...]
    contents: tuple[bytes, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class History:
    lines: tuple[Line, ...]
    asked: Filter
    next: str
    verbs: tuple[tuple[str, str], ...]
    actors: tuple[tuple[str, str], ...]
    targets: tuple[str, ...]
    checks: Overview | None
    """On the first page of everything alone, for who may audit the whole tenant."""


def readable(user: User, tenant: Tenant) -> bool:
    """Would this person see anything of the history? Its place in the navigation is shown only then."""
    return permissions.somewhere(user, Verb.AUDIT, tenant)


def history(user: User, tenant: Tenant, asked: Filter) -> History:
    """A page of the history. Raises LedgerError `forbidden` without the right to audit, `invalid` for a filter that can't be read."""
    rows, whole = _audited(user, tenant)
    if asked.since and asked.until and _moment("until", asked.until, over=True) <= _moment("since", asked.since):
        raise LedgerError("invalid", "that is before the beginning", "Choose a later end.", field="until")
    found = list(_narrowed(tenant, rows, asked)[: SHOWN + 1])
    more, found = len(found) > SHOWN, found[:SHOWN]
    return replace(
        _form(tenant, asked, whole),
        lines=entry_lines.lines(user, tenant, found),
        next=_next(found[-1]) if more else "",
        checks=verification_pages.overview(tenant) if whole and asked == Filter() else None,
    )


def entry(user: User, tenant: Tenant, stream: UUID, seq: int) -> Entry:
    """One entry by the stream that it is in and its number there. Raises LedgerError `not-found`, for who may not audit too."""
    rows = _audited(user, tenant)[0] if readable(user, tenant) else JournalEntry.objects.of(tenant).none()
    asked = (seq - 1, seq, seq + 1) if 0 < seq < LAST else ()
    near = {row.seq: row for row in rows.filter(stream_id=stream, seq__in=asked)}
    if seq not in near:
        raise LedgerError("not-found", "there is no such entry here", "Check the address.")
    row, before = near[seq], near.get(seq - 1)
    previous = journal.GENESIS if before is None else bytes(before.digest)
    return Entry(
        line=entry_lines.lines(user, tenant, [row])[0],
        previous="" if before is None else previous.hex(),
        follows=seq + 1 in near,
        content=pretty(bytes(row.content)),
        holds=journal.link(previous, bytes(row.content)) == bytes(row.digest),
    )


def export(user: User, tenant: Tenant, asked: Filter) -> Iterator[Exported]:
    """What a search finds, newest first, in steps and at most `MOST_EXPORTED` entries. Raises LedgerError as `history` does, at once."""
    rows, _ = _audited(user, tenant)
    return _steps(user, tenant, rows, asked, list(_narrowed(tenant, rows, asked)[:STEP]))


def _steps(
    user: User, tenant: Tenant, rows: QuerySet[JournalEntry], asked: Filter, found: list[JournalEntry]
) -> Iterator[Exported]:
    told = 0
    while found and told < MOST_EXPORTED:
        step = found[: MOST_EXPORTED - told]
        told += len(step)
        following = list(_narrowed(tenant, rows, replace(asked, before=_next(step[-1])))[:STEP])
        documents = tuple(bytes(row.content) for row in step)
        yield Exported(entry_lines.lines(user, tenant, step), documents, bool(following))
        found = following


def _next(last: JournalEntry) -> str:
    return f"{last.at.isoformat()}~{last.pk}"


def unasked(user: User, tenant: Tenant, typed: Filter) -> History:
    """The history's form as it was filled in, with nothing looked for. Raises LedgerError `forbidden`."""
    return _form(tenant, typed, _audited(user, tenant)[1])


def _form(tenant: Tenant, asked: Filter, whole: bool) -> History:
    targets = Target.objects.of(tenant).order_by("name").values_list("name", flat=True)[:200]
    return History((), asked, "", _verbs(whole), _actors(tenant), tuple(targets), None)


def moved(user: User, tenant: Tenant, asked: Filter, at: datetime) -> Moved:
    """How many entries of this search came after a moment. Raises LedgerError as `history` does."""
    rows, _ = _audited(user, tenant)
    return newer.since(_narrowed(tenant, rows, asked, at), "at", at)


def _audited(user: User, tenant: Tenant) -> tuple[QuerySet[JournalEntry], bool]:
    """The entries that this person may read, and whether these are all of the tenant."""
    types = permissions.visible(user, Verb.AUDIT).filter(tenant=tenant)
    whole = permissions.can(user, Verb.AUDIT, tenant)
    if not whole and not types.exists():
        raise LedgerError(
            "forbidden",
            "only auditors and administrators see the history",
            "An administrator of the tenant can give you the right to audit. Each run’s own page tells what happened to it.",
        )
    rows: QuerySet[JournalEntry] = JournalEntry.objects.of(tenant)
    if not whole:
        rows = rows.filter(kind="run", stream_id__in=Run.objects.of(tenant).filter(workflow__in=types).values("pk"))
    return rows, whole


def _narrowed(
    tenant: Tenant, rows: QuerySet[JournalEntry], asked: Filter, after: datetime | None = None
) -> QuerySet[JournalEntry]:
    """The entries that a search asks for, those after a moment where one is given, newest first, by an index that brings them in this order."""
    at, entry, when = "at", "id", Q()
    if asked.target:
        target = Target.objects.of(tenant).filter(name=asked.target).values("pk")[:1]
        at, entry, when = "about__at", "about__entry_id", Q(about__target_id=Subquery(target))
    if after is not None:
        when &= Q((f"{at}__gt", after))
    if asked.since:
        when &= Q((f"{at}__gte", _moment("since", asked.since)))
    if asked.until:
        when &= Q((f"{at}__lt", _moment("until", asked.until, over=True)))
    if asked.before:
        moment, last = _place(asked.before)
        when &= (Q((f"{at}__lt", moment)) | Q((f"{entry}__lt", last))) & Q((f"{at}__lte", moment))
    # Together, so that all of it is asked of one and the same row where the target's own rows are gone through.
    rows = rows.filter(when).order_by(f"-{at}", f"-{entry}")
    if asked.actor:
        system = [f"system:{name}" for name in actors.SYSTEM]
        rows = rows.filter(actor__in=system) if asked.actor == "system:" else rows.filter(actor=asked.actor)
    if asked.verb:
        rows = rows.filter(verb=asked.verb)
    if asked.run:
        rows = rows.filter(stream_id__in=_runs(tenant, asked.run))
    return rows


def _place(text: str) -> tuple[datetime, int]:
    """Where a page begins, from `time~id`."""
    at, _, entry = text.partition("~")
    try:
        if not entry.isascii() or not entry.isdecimal() or len(entry) > 18:
            raise ValueError(entry)
        return parse_time(at, "before"), int(entry)
    except (ValueError, LedgerError):
        raise LedgerError("invalid", "this page of the history can't be found", "Start from its first page.") from None


def _runs(tenant: Tenant, text: str) -> QuerySet[Run]:
    """The run of this id, or those whose ids end so, as lists show them."""
    digits = text.lower().replace("-", "")
    if not search.ENDING.fullmatch(digits) or len(digits) < search.INDEXED:
        raise LedgerError(
            "invalid",
            "that is not a run's id",
            "Copy it from the run's page, or its last eight characters from a list.",
            field="run",
        )
    return search.ending(tenant.pk, digits)


def _moment(field: str, text: str, *, over: bool = False) -> datetime:
    """When a day, minute or second begins, or when it is over."""
    lasts = (
        timedelta(days=1) if _DAY.fullmatch(text) else timedelta(minutes=1) if len(text) == 16 else timedelta(seconds=1)
    )
    try:
        if not _TIME.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text).replace(tzinfo=UTC) + (lasts if over else timedelta(0))
    except (ValueError, OverflowError):
        raise LedgerError(
            "invalid",
            "that is neither a day nor a time",
            "Write it as 2026-11-30 or as 2026-11-30T16:45, in UTC.",
            field=field,
        ) from None


def _verbs(whole: bool) -> tuple[tuple[str, str], ...]:
    """What the filter offers, in words; where two read alike their codes tell them apart. Administration is for who may audit the whole."""
    offered = {code: text for code, (text, _) in VERBS.items() if whole or code.partition(".")[0] not in OFFICE}
    told = {code: _plain(text) for code, text in offered.items()}
    count = Counter(told.values())
    named = {code: text if count[text] == 1 else f"{text} ({code})" for code, text in told.items()}
    return tuple(sorted(named.items(), key=lambda each: each[1].lower()))


def _plain(sentence: str) -> str:
    """A verb's sentence without its names: it begins with its first word, so that typing a letter finds it in a list."""
    text = re.sub(r"“?\{\w+\}”?", "…", sentence).removesuffix(": …").removesuffix(" …").removeprefix("… ")
    return text[:1].upper() + text[1:]


def _actors(tenant: Tenant) -> tuple[tuple[str, str], ...]:
    """Whom the filter offers: the tenant's people and agents, and the system as one."""
    people = User.objects.filter(memberships__tenant_id=tenant.pk).values_list(Value("person"), "pk", "name")
    agents = Agent.objects.of(tenant).values_list(Value("agent"), "pk", "name")
    known = sorted(people.union(agents, all=True).order_by("name")[:400], key=lambda each: each[0], reverse=True)
    return (
        *((f"{kind}:{pk}", shown(name) if kind == "person" else f"agent {shown(name)}") for kind, pk, name in known),
        ("system:", "resumeapp itself"),
    )
