"""Which files the convention tests look at: what git tracks or would track."""

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
_GENERATED: Final = ("static/vendor/", "tests/browser/vendor/", "requirements/", "docs/openapi.json")
_TEXT: Final = frozenset({".py", ".md", ".toml", ".txt", ".in", ".html", ".css", ".js", ".sql", ".json", ".yml", ""})


def tracked() -> list[Path]:
    """Every text file of the repository, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = (Path(name) for name in listed.split("\0") if name)
    return sorted(path for path in paths if path.suffix in _TEXT and (ROOT / path).is_file())


def written_by_us() -> list[Path]:
    """Tracked text files without locks, vendored and generated ones."""
    return [path for path in tracked() if not str(path).startswith(_GENERATED)]


def product_modules() -> list[Path]:
    """Python of the product, its client and examples: no tests, no migrations."""
    skipped = {"tests", "migrations", "benchmarks"}
    return [path for path in written_by_us() if path.suffix == ".py" and not skipped.intersection(path.parts)]


def modules() -> list[Path]:
    """All Python that somebody wrote: product, client, examples, benchmarks and tests, but no migrations."""
    return [path for path in written_by_us() if path.suffix == ".py" and "migrations" not in path.parts]


def read(path: Path) -> str:
    """The text of a file given relative to the root."""
    return (ROOT / path).read_text(encoding="utf-8")
