"""Ten thousand open requests: the inbox costs what it costs for ten, and its pages skip and repeat nothing while rows leave."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.domain.decisions import EntryPoint
from approvals.models import ApprovalRequest
from approvals.services.decisions import decide
from benchmarks.loader import golden, load
from benchmarks.scene import Scene
from ledger.models import Tenant, User
from tests.approvals.asking import RECEIPT
from tests.ui.asking import client_of

pytestmark = [pytest.mark.postgres_only, pytest.mark.slow, pytest.mark.django_db]
FEW, MANY = 10, 10_000
ROW = re.compile(r"/approvals/([0-9a-f-]{36})/\"")
NEXT = re.compile(r'href="[^"?]*(\?[^"]*)" rel="next"')


def test_ten_thousand_requests_cost_the_queries_of_ten_and_no_page_skips_or_repeats_one() -> None:
    # All of it in one transaction that is taken back: other tests' sweeps would look at ten thousand waits.
    scene = Scene()
    tenant, person = Tenant.objects.get(pk=scene.seat.tenant_id), User.objects.get(pk=scene.seat.person_id)
    client = client_of(person)
    made = golden(scene.asked(200))

    def queries() -> int:
        with CaptureQueriesContext(connection) as taken:
            inbox(client, tenant)
        return len(taken)

    load(made, FEW)
    few = queries()
    load(made, MANY - FEW, first=FEW + 1)
    assert ApprovalRequest.objects.of(tenant).filter(state="pending").count() > MANY
    assert queries() == few <= 30
    assert "1,000+" in inbox(client, tenant)
    seen: list[str] = []
    query = ""
    for _ in range(3):
        page = inbox(client, tenant, query)
        shown = list(dict.fromkeys(ROW.findall(page)))
        seen += shown
        request = ApprovalRequest.objects.of(tenant).get(pk=shown[0])
        decide(person, request.pk, "approve", "", bytes(request.digest), request.revision, EntryPoint.PAGE, RECEIPT)
        following = NEXT.search(page)
        assert following is not None
        query = following[1].replace("&amp;", "&")
    assert len(seen) == len(set(seen)) > 60, "none is on two pages"
    first = ApprovalRequest.objects.of(tenant).order_by("decide_by", "pk").values_list("pk", flat=True)
    assert seen == [str(pk) for pk in first[: len(seen)]], "and none was passed over"


def inbox(client: Client, tenant: Tenant, query: str = "") -> str:
    answer = client.get(f"/t/{tenant.slug}/inbox/{query}")
    assert answer.status_code == 200
    return str(answer.content.decode())
