"""Run one of these agents as a worker: `python -m examples.agents --workflow refunds --version 1 …`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

from resumeapp_client import Client, ResumeappError, Worker, Workflow

from examples.agents import refunds_v1, refunds_v2, wires

KEY_VARIABLE = "RESUMEAPP_KEY"
WORKFLOWS: dict[tuple[str, str], Workflow[Any]] = {
    (flow.type, flow.version): flow for flow in (refunds_v1.refunds, refunds_v2.refunds, wires.wires)
}


def main(arguments: list[str]) -> int:
    """Work until SIGTERM; 1 when the server refuses, 2 when the command line is wrong."""
    options = _parser().parse_args(arguments)
    flow = WORKFLOWS.get((options.workflow, options.version))
    if flow is None:
        known = ", ".join(f"{type} {version}" for type, version in sorted(WORKFLOWS))
        print(f"no workflow {options.workflow} {options.version}; there are: {known}", file=sys.stderr)
        return 2
    try:
        key = _key(options.key_file)
    except OSError as error:
        print(f"the key file can't be read: {error.strerror}", file=sys.stderr)
        return 2
    if not key:
        print(f"give the agent's key in a file (--key-file) or in {KEY_VARIABLE}", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    with Client(options.server, key) as client:
        worker = Worker(
            client,
            [flow],
            lease_seconds=options.lease_seconds,
            limit=options.limit,
            name=options.name,
            targets={"payments": options.payments, "wires": options.payments},
        )
        print(f"worker {worker.name} of {flow.type} {flow.version}, code {flow.code_digest()[:12]}", flush=True)
        try:
            worker.run()
        except ResumeappError as error:
            print(f"{error.reason}. {error.remedy}", file=sys.stderr)
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.agents", description=__doc__, allow_abbrev=False)
    parser.add_argument("--workflow", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--server", required=True, help="base URL of the server")
    parser.add_argument("--payments", required=True, help="base URL of the payment service")
    parser.add_argument("--key-file", type=Path, help=f"file that holds the key; else {KEY_VARIABLE}")
    parser.add_argument("--lease-seconds", type=int)
    parser.add_argument("--limit", type=int, default=1)
    parser.add_argument("--name")
    return parser


def _key(path: Path | None) -> str:
    return path.read_text().strip() if path is not None else os.environ.get(KEY_VARIABLE, "").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
