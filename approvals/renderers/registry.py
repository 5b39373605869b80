"""Which renderer speaks for which tool, and what is said when it can't."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

import structlog
from django.core.exceptions import ImproperlyConfigured

from approvals.renderers.words import Asked, Words, unfit

Renderer = Callable[[Asked], Words | None]
PATTERN = re.compile(r"[\w.*?\[\]-]{1,60}", re.ASCII)
VERSION = re.compile(r"[\w.-]{1,20}", re.ASCII)
DEFAULT: Final = "default/1"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Registered:
    pattern: str
    version: str
    render: Renderer

    @property
    def name(self) -> str:
        return f"{self.pattern}/{self.version}"


_registered: list[_Registered] = []


def renders(pattern: str, *, version: str) -> Callable[[Renderer], Renderer]:
    """Register a renderer for the tools that a pattern matches (`*` and `?`). What is registered last is asked first: a deployment's own before ours.
    One that answers None leaves the tool to the next. Its version stands in the receipt of each vote: change it with what it says.

    Raises ValueError for a pattern or version that a receipt can't hold.
    """
    if not PATTERN.fullmatch(pattern) or not VERSION.fullmatch(version):
        raise ValueError(f"a renderer needs a short pattern and version, not {pattern!r} and {version!r}")

    def register(renderer: Renderer) -> Renderer:
        _registered.append(_Registered(pattern, version, renderer))
        return renderer

    return register


def load(modules: Iterable[str]) -> None:
    """Import a deployment's modules, which register their renderers. Raises ImproperlyConfigured: no process starts without one of them."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise ImproperlyConfigured(f"RESUMEAPP_RENDERERS: {module} can't be imported: {error!r}") from error


def words_for(asked: Asked) -> Words:
    """Our words for what is asked; the cautious default where nobody knows better, with a note when a renderer failed."""
    for each in reversed(_registered):
        if not fnmatchcase(asked.tool, each.pattern):
            continue
        words, fault = _ask(each, asked)
        if fault:
            return replace(_default(asked), note=f"The renderer {each.name} of this tool failed: {fault}.")
        if words is not None:
            return replace(words, renderer=each.name, note="")
    return _default(asked)


def _ask(each: _Registered, asked: Asked) -> tuple[Words | None, str]:
    # A copy: what a renderer does to the arguments must not change what stands below.
    own = replace(asked, arguments=copy.deepcopy(asked.arguments), seen=copy.deepcopy(asked.seen))
    try:
        words = each.render(own)
    except Exception as error:
        _log.error("renderer_failed", renderer=each.name, error=type(error).__name__)
        return None, "it stopped with an error"
    fault = "" if words is None else unfit(words)
    if fault:
        _log.error("renderer_unfit", renderer=each.name, why=fault)
    return words, fault


def _default(asked: Asked) -> Words:
    place = f"{asked.resource} at {asked.target}" if asked.resource else asked.target
    return Words(
        headline=f"Call {asked.tool} on {place}",
        verb="this call",
        risk="high",
        risk_label="Not rated: treat as high risk",
        undo="not known whether it can be undone",
        rated=False,
        renderer=DEFAULT,
    )
