"""The strict parser refuses what readers would read differently; the canonical form is RFC 8785; commitments need their salt."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, date, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st
from resumeapp_client.canonical import canonical as sent

from ledger.domain.canonical import canonical, commit, digest, parse, parse_time, plain, recorded
from ledger.domain.errors import LedgerError

REFUSED = [
    (b'{"a": 1, "a": 2}', "duplicate-key"),
    (b'{"a": {"b": 1, "b": 1}}', "duplicate-key"),
    (b"NaN", "number-out-of-range"),
    (b'{"a": Infinity}', "number-out-of-range"),
    (b"[-Infinity]", "number-out-of-range"),
    (b"1e400", "number-out-of-range"),
    (b"9007199254740992", "number-out-of-range"),
    (b"9007199254740992.0", "number-out-of-range"),
    (b"9.1e15", "number-out-of-range"),
    (b"-9007199254740992", "number-out-of-range"),
    (b'"a\\u0000b"', "bad-text"),
    (b'{"a": ["\\ud83d"]}', "bad-text"),
    (b'{"\\udc00": 1}', "bad-text"),
    (b'"\xff"', "malformed-json"),
    (b"{", "malformed-json"),
    (b"", "malformed-json"),
    (b"{'a': 1}", "malformed-json"),
    (b"[1,]", "malformed-json"),
    (b"1 2", "malformed-json"),
    (b"[" * 100_000, "malformed-json"),
]


@pytest.mark.parametrize(("raw", "code"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_readers_would_read_differently_is_refused_with_a_remedy(raw: bytes, code: str) -> None:
    with pytest.raises(LedgerError) as refused:
        parse(raw)
    assert refused.value.code == code
    assert refused.value.remedy


def test_a_document_over_the_limit_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(LedgerError) as refused:
        parse(b"{" * 2_000, limit=1_000)
    assert refused.value.code == "too-large"
    assert refused.value.facts == {"size": 2_000, "limit": 1_000}


@pytest.mark.parametrize(
    "secret", ['"4929000000000000\\u0000"', "4929000000000000123", "-4929000000000000123.0", "4929e999"]
)
def test_a_refusal_names_the_place_and_never_the_text(secret: str) -> None:
    with pytest.raises(LedgerError) as refused:
        parse(b'{"customer": {"cards": [1, ' + secret.encode() + b"]}}")
    assert "$.customer.cards[1]" in refused.value.reason
    assert "4929" not in refused.value.reason and "4929" not in repr(refused.value.facts)


def test_the_largest_safe_integers_are_kept() -> None:
    assert parse(b"[9007199254740991, -9007199254740991]") == [2**53 - 1, -(2**53) + 1]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(
        lambda value: not (2**53 <= abs(value) < 1e21 and value.is_integer())
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
)
KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(DOCUMENTS)
def test_the_canonical_form_is_rfc_8785_whatever_the_document(document: object) -> None:
    assert canonical(document) == rfc8785.dumps(document)


@given(DOCUMENTS)
def test_parsing_a_canonical_form_gives_the_same_form_again(document: object) -> None:
    assert canonical(parse(canonical(document))) == canonical(document)


@given(DOCUMENTS)
@example({"\U0001f600": 1, "\ufb01": [1e-5, 1.5e-6, -1e-6, 1e-7, 5e-324, 1e21, 1e300, -0.0, 100.0]})
def test_the_client_sends_the_very_bytes_that_were_recorded_and_that_a_replay_sends(document: object) -> None:
    assert sent(json.loads(canonical(document))) == canonical(document)


class Word(StrEnum):
    PLAIN = "plain"
    NOT_ASCII = "ä"


RECORDED = st.recursive(
    SCALARS
    | st.uuids()
    | st.binary(max_size=8)
    | st.binary(max_size=8).map(memoryview)
    | st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=2))))
    | st.sampled_from(Word),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS | st.uuids() | st.sampled_from(Word), inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4).map(MappingProxyType)
    ),
)


@given(RECORDED)
def test_a_record_value_written_in_one_pass_is_the_canonical_form_of_its_plain_one(value: object) -> None:
    try:
        expected = rfc8785.dumps(plain(value))
    except (OverflowError, rfc8785.CanonicalizationError):  # a time that UTC's calendar doesn't have
        return
    assert recorded(value) == expected


@pytest.mark.parametrize("value", [object(), date(2026, 1, 31), [{"deep": (1, complex(1))}], {"of": Decimal(1)}])
def test_what_has_no_place_in_the_record_is_not_written(value: object) -> None:
    with pytest.raises(TypeError, match="has no place in the record"):
        recorded(value)


@given(st.binary(max_size=64))
def test_bytes_that_no_strict_reader_takes_never_raise_anything_but_a_refusal(raw: bytes) -> None:
    try:
        parse(raw)
    except LedgerError as refused:
        assert refused.code in {"malformed-json", "duplicate-key", "number-out-of-range", "bad-text"}
    else:
        json.loads(raw)


def test_a_commitment_is_sha_256_of_salt_and_bytes() -> None:
    assert commit(b"salt", b"bytes") == hashlib.sha256(b"saltbytes").digest()


@given(st.dictionaries(KEYS, SCALARS, min_size=1, max_size=4))
def test_digests_of_two_kinds_never_meet(fields: dict[str, object]) -> None:
    usable = {key: value for key, value in fields.items() if not isinstance(value, float)}
    assert digest("a/1", usable) != digest("b/1", usable)


def test_a_naive_time_is_refused_and_an_offset_becomes_utc() -> None:
    with pytest.raises(LedgerError) as refused:
        parse_time("2026-01-31T09:30:00", "at")
    assert refused.value.code == "naive-time"
    assert parse_time("2026-01-31T09:30:00+01:00", "at").isoformat() == "2026-01-31T08:30:00+00:00"


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_time_that_no_calendar_has_in_utc_is_refused(text: str) -> None:
    with pytest.raises(LedgerError, match="invalid"):
        parse_time(text, "deadline")
