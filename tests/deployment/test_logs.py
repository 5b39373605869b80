"""Logs are JSON lines that never carry credentials or bodies."""

import json
import os
import subprocess
import sys

import pytest

from resumeapp.logs import HIDDEN, hide_secrets
from tests.conventions.sources import ROOT


@pytest.mark.parametrize(
    "field",
    [
        "Authorization",
        "HTTP_AUTHORIZATION",
        "cookie",
        "Set-Cookie",
        "password",
        "request_body",
        "csrftoken",
        "api_key",
        "sessionid",
        "payload",
        "secret_key",
    ],
)
def test_a_field_named_like_a_secret_or_a_body_is_hidden(field: str) -> None:
    event = hide_secrets(None, "info", {"event": "x", "headers": {field: "hunter2"}})
    assert event == {"event": "x", "headers": {field: HIDDEN}}


@pytest.mark.parametrize(
    "text",
    [
        "got Authorization: Bearer hunter2",
        "bearer hunter2",
        "Cookie: a=hunter2; b=hunter2",
        "postgres://u:hunter2@db/x",
        "Basic hunter2",
    ],
)
def test_a_credential_inside_a_text_is_hidden(text: str) -> None:
    assert "hunter2" not in str(hide_secrets(None, "info", {"event": text, "list": [text]}))


def test_bytes_are_never_logged() -> None:
    assert hide_secrets(None, "info", {"data": b"hunter2"}) == {"data": HIDDEN}


def test_a_line_is_json_and_a_traceback_in_it_is_cleaned() -> None:
    program = (
        "import django, logging, structlog; django.setup();"
        "structlog.get_logger('a').info('said', run='r1', token='hunter2');"
        "\ntry: raise ValueError('Authorization: Bearer hunter2')"
        "\nexcept ValueError: logging.getLogger('django.request').exception('failed %s', 'x')"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "resumeapp.settings", "RESUMEAPP_MODE": "test"}
        | {"RESUMEAPP_LOG_LEVEL": "INFO"},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = (json.loads(line) for line in result.stderr.splitlines())
    assert first["event"] == "said"
    assert first["run"] == "r1"
    assert first["token"] == HIDDEN
    assert second["event"] == "failed x"
    assert "ValueError" in second["exception"]
    assert "hunter2" not in result.stderr
