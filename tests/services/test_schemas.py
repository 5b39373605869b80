"""A state's schema comes from an agent: it reaches nothing beyond itself."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import pytest

from ledger.domain.errors import LedgerError
from ledger.services import schemas


def test_a_schema_that_refers_to_an_address_is_refused_and_nothing_is_fetched() -> None:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}/schema"
        for schema in ({"$ref": address}, {"$schema": address}, {"properties": {"a": {"$dynamicRef": address}}}):
            with pytest.raises(LedgerError, match="invalid"):
                schemas.check_schema(schema)
        server.shutdown()
        thread.join()
    assert asked == []


def test_a_schema_that_refers_to_a_file_is_refused_and_tells_nothing_of_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('"the words of the file"')
    with pytest.raises(LedgerError) as refusal:
        schemas.check_schema({"$ref": secret.as_uri()})
    assert refusal.value.code == "invalid"
    assert "words" not in refusal.value.reason


def test_a_schema_may_refer_to_itself_and_to_the_standard_s_own() -> None:
    schemas.check_schema({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}})
    schemas.check_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}
    schemas.check_state(b"1" * 32, schema, {})
    with pytest.raises(LedgerError, match="schema-mismatch"):
        schemas.check_state(b"1" * 32, schema, [])


def test_a_schema_that_would_take_for_ever_is_refused_before_a_validator_sees_it() -> None:
    defs = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"} for _ in range(2)]} for level in range(60)}
    with pytest.raises(LedgerError) as refusal:
        schemas.check_schema({"$ref": "#/$defs/d0", "$defs": {**defs, "d60": {"type": "integer"}}})
    assert refusal.value.code == "invalid" and "more than 1000 subschemas" in refusal.value.reason
