"""Print the API's OpenAPI document: `manage.py openapi > docs/openapi.json`."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand

from resumeapp.api import api


def text() -> str:
    """The document as it is kept in the repository."""
    return json.dumps(api.get_openapi_schema(), indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"


class Command(BaseCommand):
    help = "Print the API's OpenAPI document."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(text(), ending="")
