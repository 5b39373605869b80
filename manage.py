#!/usr/bin/env python3
"""Django's command line for resumeapp."""

import os
import sys

from django.core.management import execute_from_command_line

from resumeapp.env import EnvError


def main() -> int:
    """Run one management command; a bad environment is one clear message, not a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "resumeapp.settings")
    if sys.argv[1:2] == ["demo"]:
        os.environ.setdefault("RESUMEAPP_MODE", "demo")
        os.environ.setdefault("RESUMEAPP_CHECK_SECONDS", "10")  # leases are ten seconds there
    if sys.argv[1:2] == ["qcluster"]:
        os.environ.setdefault("RESUMEAPP_PROCESS", "cluster")
    try:
        execute_from_command_line(sys.argv)
    except EnvError as fault:
        print(fault, file=sys.stderr)
        return 78
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
