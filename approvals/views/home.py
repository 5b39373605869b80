"""The front door: to the inbox of the person's first tenant."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from approvals.views.access import signed_out, uncached
from ledger.models import Tenant, User


def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the inbox of the first tenant, by name, that the person is an active member of."""
    if not isinstance(request.user, User):
        return uncached(signed_out(request))
    memberships = request.user.memberships.model.objects.across_tenants().filter(user=request.user, active=True)
    tenant = Tenant.objects.filter(pk__in=memberships.values("tenant")).order_by("name", "slug").first()
    if tenant is None:
        raise PermissionDenied
    return uncached(HttpResponseRedirect(f"/t/{tenant.slug}/inbox/"))
