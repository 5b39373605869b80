"""Money as people read it: one table of digits, and no guess."""

from __future__ import annotations

import pytest

from approvals.domain.money import DECIMALS, Money, total


@pytest.mark.parametrize("code", ["XAF", "XOF", "UGX", "PYG", "XPF", "RWF", "JPY", "KRW", "VND", "BIF", "GNF", "VUV"])
def test_currencies_without_minor_units_have_no_point(code: str) -> None:
    assert str(Money(150_000, code)) == f"150,000 {code}"


@pytest.mark.parametrize(
    ("code", "text"), [("IQD", "150.000"), ("LYD", "150.000"), ("CLF", "15.0000"), ("MGA", "1,500.00")]
)
def test_currencies_with_other_digits_than_two_keep_them(code: str, text: str) -> None:
    assert str(Money(150_000, code)) == f"{text} {code}"


def test_an_unknown_currency_is_shown_as_it_stands_and_says_so() -> None:
    assert str(Money(150_000, "QQQ")) == "150,000 minor units of QQQ"
    assert str(Money(-7, "QQQ")) == "−7 minor units of QQQ"


def test_every_code_is_listed_once_and_is_a_code() -> None:
    assert len(DECIMALS) == 166 and all(len(code) == 3 and code.isupper() for code in DECIMALS)


@pytest.mark.parametrize(
    "document",
    [{}, {"amount_minor": 1}, {"amount_minor": True, "currency": "EUR"}, {"amount_minor": 1.5, "currency": "EUR"}]
    + [{"amount_minor": 1, "currency": code} for code in ("eur", "EURO", "ЕUR", 978, None)],
)
def test_what_is_not_plainly_money_is_none(document: dict[str, object]) -> None:
    assert Money.read(document) is None


def test_sums_are_kept_apart_by_currency() -> None:
    summed = total([Money(1, "EUR"), Money(2, "JPY"), Money(3, "EUR")])
    assert [str(each) for each in summed] == ["0.04 EUR", "2 JPY"]
