import pytest

from .process import Caller


def test_an_order_that_is_not_there_is_404(caller: Caller) -> None:
    assert caller.call("GET", "/orders/18").status == 404
    assert caller.call("PATCH", "/orders/18", {"status": "sent"}).status == 404


def test_an_edit_of_an_older_version_is_refused_with_the_current_one(caller: Caller) -> None:
    caller.call("PATCH", "/orders/17", {"status": "sent"})
    answer = caller.call("PATCH", "/orders/17", {"status": "lost"}, If_Match='"v1"')
    assert (answer.status, answer.body["current_etag"]) == (412, '"v2"')
    assert caller.call("GET", "/orders/17").body["status"] == "sent"


def test_an_amount_below_what_was_refunded_is_refused(caller: Caller) -> None:
    caller.refund("k")
    answer = caller.call("PATCH", "/orders/17", {"amount_minor": 1499})
    assert (answer.status, answer.body["error"]) == (422, "below_refunded")


def test_each_edit_moves_the_version_and_the_etag(caller: Caller) -> None:
    edited = caller.call("PATCH", "/orders/17", {"amount_minor": 9000}, If_Match='"v1"')
    replaced = caller.order(7000)
    assert (edited.headers["ETag"], replaced.headers["ETag"]) == ('"v2"', '"v3"')
    assert replaced.status == 200 and caller.call("GET", "/orders/17").body["amount_minor"] == 7000


@pytest.mark.parametrize("amount", ["", "x", "-1", "0", "1.234", "NaN", "1e400"])
def test_the_form_refuses_what_is_no_amount(caller: Caller, amount: str) -> None:
    assert caller.call("POST", "/orders/17", f"amount={amount}".encode()).status == 400


def test_the_page_shows_both_sides_escaped_and_its_form_moves_the_order(caller: Caller) -> None:
    caller.call("PATCH", "/orders/17", {"customer": "<script>alert(1)</script>"})
    refund = caller.refund("key-of-this-one").body
    moved = caller.call("POST", "/orders/17", b"amount=99.50", Content_Type="application/x-www-form-urlencoded")
    assert (moved.status, moved.headers["Location"]) == (303, "/")
    page = caller.call("GET", "/")
    text = page.raw.decode()
    assert "<script" not in text and "&lt;script&gt;" in text and "://" not in text
    assert refund["id"] in text and "EUR 15.00" in text and 'value="99.50"' in text
    assert caller.call("GET", "/orders/17").headers["ETag"] == '"v4"'


def test_a_form_on_a_foreign_page_can_not_move_an_order(caller: Caller) -> None:
    assert caller.call("POST", "/orders/17", b"amount=1", Sec_Fetch_Site="cross-site").status == 403
    seen = caller.call("GET", "/orders/17", Sec_Fetch_Site="cross-site")
    assert seen.headers["ETag"] == '"v1"'
