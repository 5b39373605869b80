"""Nothing is left for later, and nothing of one machine or registry is in the repository."""

import re

from tests.conventions import sources

# Put together so that this file doesn't contain what it looks for.
LATER = re.compile(r"\b(?:{})\b".format("|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"))))
REGISTRIES = re.compile(
    r"(?<![\w-])(?:{})".format(
        "|".join(
            re.escape(".".join(parts))
            for parts in (
                ("pypi", "org"),
                ("pythonhosted", "org"),
                ("files", "pythonhosted"),
                ("registry", "npmjs"),
                ("deb", "debian", "org"),
            )
        )
    )
)
INDEX_OPTIONS = re.compile(r"--(?:extra-)?index" + r"-url|--find" + r"-links|--trusted" + "-host")
MACHINE_PATHS = re.compile(r"(?<![\w.])/wo" + r"rk/")


def found(pattern: re.Pattern[str], paths: list[sources.Path]) -> list[str]:
    """`path:line` of every match."""
    return [
        f"{path}:{number}"
        for path in paths
        for number, line in enumerate(sources.read(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_patterns_find_what_they_are_for() -> None:
    assert LATER.search("# TO" + "DO: finish")
    assert REGISTRIES.search("https://py" + "pi.org/simple")
    assert INDEX_OPTIONS.search("--extra-index" + "-url x")
    assert MACHINE_PATHS.search("cd /wo" + "rk/main")


def test_nothing_is_left_for_later() -> None:
    assert not found(LATER, sources.written_by_us()), "do it now or leave it out"


def test_no_package_registry_is_named() -> None:
    assert not found(REGISTRIES, sources.tracked()), "whoever installs chooses the registry"


def test_no_index_option_is_in_a_requirements_file() -> None:
    locks = [path for path in sources.tracked() if path.parts[0] == "requirements"]
    assert not found(INDEX_OPTIONS, locks)


def test_no_path_of_one_machine_is_named() -> None:
    assert not found(MACHINE_PATHS, sources.written_by_us())
