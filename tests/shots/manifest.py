"""Which pages are pictured in which states. A page has every kind of state, or says here why it has none of that kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

KINDS = ("empty", "full", "error", "hostile", "loading")
States = dict[str, tuple[str, ...]]

PAGES: dict[str, States] = {
    "sign-in": {"empty": ("empty",), "error": ("error",), "hostile": ("hostile",)},
    "inbox": {
        "empty": ("empty",),
        "full": ("full", "queues", "operator", "stalled", "approvals", "newer", "keys", "account"),
        "error": ("error",),
        "hostile": ("hostile",),
        "loading": ("loading",),
    },
    "card": {
        "full": (
            "pending",
            "big",
            "soon",
            "moved",
            "approved",
            "revoked",
            "denied",
            "expired",
            "completed",
            "onlooker",
            "impossible",
        ),
        "error": ("error", "signed-out", "409", "410", "412", "428"),
        "hostile": ("hostile", "hostile-decided"),
        "loading": ("deciding", "looking"),
    },
    "runs": {
        "empty": ("empty", "none"),
        "full": ("full",),
        "error": ("error",),
        "hostile": ("hostile",),
        "loading": ("loading",),
    },
    "run": {
        "full": (
            "running",
            "ready",
            "unclaimed",
            "silent",
            "pending",
            "moved",
            "events",
            "unknown",
            "blocked",
            "completed",
            "cancelled",
            "opened",
            "verified",
            "onlooker",
        ),
        "hostile": ("hostile",),
        "loading": ("verifying",),
    },
    "reconcile": {
        "empty": ("empty",),
        "full": ("full", "newer", "onlooker"),
        "error": ("error",),
        "hostile": ("hostile",),
        "loading": ("loading",),
    },
    "effect": {
        "full": ("unknown", "wire", "blocked", "doubted", "cancelled", "onlooker"),
        "error": ("error", "409"),
        "hostile": ("hostile",),
        "loading": ("settling",),
    },
    "handoffs": {
        "empty": ("empty",),
        "full": ("full", "newer", "closed", "onlooker"),
        "error": ("error",),
        "hostile": ("hostile",),
        "loading": ("loading",),
    },
    "handoff": {
        "full": ("open", "given-up", "mine", "taken", "closed", "onlooker"),
        "error": ("error",),
        "hostile": ("hostile",),
        "loading": ("closing",),
    },
    "history": {
        "empty": ("none",),
        "full": ("full", "onlooker"),
        "error": ("error",),
        "hostile": ("hostile",),
        "loading": ("verifying",),
    },
    "entry": {"full": ("full", "first", "onlooker"), "hostile": ("hostile",)},
    "verification": {"full": ("intact",), "loading": ("under-way",)},
    "design": {"full": ("full",)},
    "reference": {"full": ("calls", "conventions")},
    "not-found": {"error": ("plain", "framed")},
    "fault": {
        "error": ("401", "403", "403_csrf", "409", "410", "412", "422", "428", "500", "no_tenant"),
        "hostile": ("hostile",),
    },
}

NONE: dict[tuple[str, str], str] = {
    ("sign-in", "full"): "the browser fills it in, and nothing else is on it",
    (
        "sign-in",
        "loading",
    ): "its form is sent by the browser itself: the page stays as it is until the next one is there",
    ("card", "empty"): "it is about one request",
    ("run", "empty"): "it is about one run",
    ("run", "error"): "its only form has no field that could be wrong",
    ("effect", "empty"): "it is about one call",
    ("handoff", "empty"): "it is about one handoff",
    ("entry", "empty"): "it is about one entry",
    ("entry", "error"): "it has no form, and takes nothing from its address but the entry",
    ("entry", "loading"): "it asks for nothing",
    ("verification", "empty"): "it is about one check",
    ("verification", "error"): "it has no form, and takes nothing from its address but the check",
    ("verification", "hostile"): "it shows codes and ids of ours alone",
    ("design", "empty"): "it shows the files that every installation has",
    ("design", "error"): "it has no form that is sent",
    ("design", "hostile"): "it shows texts of ours alone",
    ("design", "loading"): "it asks for nothing",
    ("reference", "empty"): "it shows what every installation has",
    ("reference", "error"): "it has no form",
    ("reference", "hostile"): "it shows texts of ours alone",
    ("reference", "loading"): "it asks for nothing",
    ("not-found", "empty"): "it is an error",
    ("not-found", "full"): "it is an error",
    ("not-found", "hostile"): "it repeats nothing of what was asked for",
    ("not-found", "loading"): "it asks for nothing",
    ("fault", "empty"): "it is an error",
    ("fault", "full"): "it is an error",
    ("fault", "loading"): "it asks for nothing",
}


def names() -> Iterator[str]:
    """The names of all pictures to take, without theme and width."""
    for page, states in PAGES.items():
        for kind in states.values():
            yield from (f"{page}-{state}" for state in kind)


def gaps(staged: Iterable[str]) -> list[str]:
    """What keeps these names of staged pictures from being the manifest's: each missing, unknown or doubled one."""
    found = list(staged)
    wanted = list(names())
    return [
        *(f"{name} is in the manifest and isn't staged" for name in wanted if name not in found),
        *(f"{name} is staged and isn't in the manifest" for name in found if name not in wanted),
        *(f"{name} is staged more than once" for name in dict.fromkeys(found) if found.count(name) > 1),
    ]


def unexplained() -> list[str]:
    """Kinds of states that a page has not, without a reason; and reasons for what it has."""
    kinds = [(page, kind) for page in PAGES for kind in KINDS]
    has = {(page, kind) for page, states in PAGES.items() for kind in states}
    return [f"{page}: {kind}" for page, kind in kinds if ((page, kind) in has) == ((page, kind) in NONE)]
