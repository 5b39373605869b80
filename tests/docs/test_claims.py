"""What documents say to type, set, read and expect is there: commands and options, targets of make, variables, codes, log words, links."""

from __future__ import annotations

import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

from django.apps import apps
from django.core.management import get_commands, load_command_class

from ledger.domain.errors import STATUS
from ledger.services import reads, search
from resumeapp.settings import env
from tests.conventions import sources

PAGES = [path for path in sources.written_by_us() if path.suffix == ".md"]
TESTS_OWN = {
    "RESUMEAPP_TEST_DB",
    "RESUMEAPP_CHROMIUM",
    "RESUMEAPP_SERVER_DIR",
    "RESUMEAPP_SERVER_PYTHON",
    "RESUMEAPP_STORM_",
    "RESUMEAPP_STORM_CUTS",
}
"""Variables of tests and of the client, which the program itself doesn't read."""
NUMBERS = {6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}
BUILDS_WORDS = {"one", "every", "the", "a", "that", "it", "sure"}
"""“make” is a verb too."""


def said(pattern: str) -> set[tuple[Path, str]]:
    """Every match of a pattern's group in the documents, with the page it is on."""
    return {(path, found) for path in PAGES for found in re.findall(pattern, sources.read(path))}


def parser_of(command: str) -> ArgumentParser:
    made: ArgumentParser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    return made


def options(parser: ArgumentParser) -> set[str]:
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            found |= {option for one in action.choices.values() for option in options(one)}
    return found


def test_every_command_is_there_with_its_options() -> None:
    lines = said(r"manage\.py ([a-z_]+(?:[ \t]+[^`\n|&;]*)?)")
    assert len(lines) > 10
    wrong = []
    for path, line in lines:
        command, *words = line.split()
        known = options(parser_of(command)) if command in get_commands() else set()
        wrong += [f"{path}: {command}"] if command not in get_commands() else []
        wrong += [
            f"{path}: {command} {word}" for word in words if re.fullmatch(r"--[a-z-]+", word) and word not in known
        ]
    assert wrong == []


def test_every_target_of_make_is_there() -> None:
    makefile = sources.read(Path("Makefile"))
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE)) | {"ONLY"}
    named = said(r"(?:`|^|\n\s*|; )make ([a-z-]+)") | said(r"`make ([a-z-]+)")
    assert len(named) > 5 and {(str(path), name) for path, name in named if name not in targets | BUILDS_WORDS} == set()
    given = said(r"make [a-z-]+ ([A-Z_]+)=")
    assert given and {(str(path), name) for path, name in given if name not in variables} == set()


def test_every_variable_is_read() -> None:
    named = said(r"\b(RESUMEAPP_[A-Z_]+)\b")
    assert named and {(str(path), name) for path, name in named if name not in {*env.settings, *TESTS_OWN}} == set()


def test_every_code_can_be_answered() -> None:
    words = " ".join(
        sources.read(path)
        for path in sources.product_modules()
        if path.parts[0] in {"ledger", "approvals", "resumeapp"} and path != Path("ledger/domain/errors.py")
    )
    assert [code for code in STATUS if f'"{code}"' not in words] == [], "no client can ever see it: take it out"


def test_every_word_of_the_log_is_logged() -> None:
    alerts = next(
        line for line in sources.read(Path("docs/operations.md")).splitlines() if line.startswith("- Logs are JSON")
    )
    named = set(re.findall(r"`(\w+)`", alerts)) | {word for _, word in said(r"`((?:sweep|hint|renderer)_\w+)`")}
    logged = " ".join(sources.read(path) for path in sources.product_modules())
    assert len(named) >= 3 and {word for word in named if f'"{word}"' not in logged} == set()
    errors = set(re.findall(r'_log\.(?:error|exception)\(\s*"(\w+)"', logged))
    untold = {word for word in errors if not any(f"`{word}`" in sources.read(path) for path in PAGES)}
    assert "look_failed" in errors and untold == set(), "say in docs/operations.md which errors deserve an alert"


def test_the_bounds_of_searches_are_as_documented() -> None:
    told = sources.read(Path("docs/performance.md"))
    assert f"among the newest {search.LOOKED_THROUGH:,} runs" in told
    assert f"in {reads.SEARCHED:,} runs at a time" in told
    assert f"ends of {NUMBERS[search.INDEXED]} digits and more" in told


def test_every_link_of_every_page_leads_somewhere() -> None:
    dead = [
        f"{path}: {target}"
        for path, target in said(r"\]\(([^)#:\s]+)\)")
        if not (sources.ROOT / path.parent / target).exists()
    ]
    assert dead == []


def test_the_tables_that_operators_ask_are_there() -> None:
    named = set(re.findall(r"FROM (\w+)", sources.read(Path("docs/operations.md"))))
    assert named and named <= {model._meta.db_table for model in apps.get_models()}
