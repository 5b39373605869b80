"""The product's addresses and two pages of a tenant, to try who gets in."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from approvals.views.access import tenant_page
from ledger.domain.identity import Verb
from ledger.models import Tenant


@tenant_page()
def anybody(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    return HttpResponse(f"{tenant.slug} {request.method}")


@tenant_page(Verb.OPERATE)
def operators(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    return HttpResponse(tenant.slug)


urlpatterns = [
    path("t/<slug:slug>/probe/", anybody),
    path("t/<slug:slug>/operators/", operators),
    path("", include("resumeapp.urls")),
]
