"""Who may open a page of a tenant, and what somebody hears who is signed out or refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from approvals.views import errors
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Verb
from ledger.models import Membership, Tenant, User, WorkflowType
from ledger.services import permissions


class TenantRequest(HttpRequest):
    """A request by a signed-in, active member of the tenant that the address names."""

    tenant: Tenant
    person: User
    counted: dict[str, str]
    acted_on: str

    htmx: Any


Page = Callable[..., HttpResponseBase]


def tenant_page(page: Page) -> Page:
    """Serve `/t/<slug>/…` to active members only: `page(request: TenantRequest, **kwargs)` without the slug.

    Anybody else signed in gets 404. Signed out, a GET is led to sign-in (htmx: 204 with HX-Redirect) and a POST hears, with 401, that nothing
    was saved. A LedgerError or Http404 of the page becomes its error page or, for htmx, a banner.
    """

    @wraps(page)
    def served(request: HttpRequest, slug: str, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return signed_out(request)
        tenant = permissions.entered(request.user.pk, slug)
        if tenant is None:
            return errors.not_found(request)
        own = cast(TenantRequest, request)
        own.tenant, own.person = tenant, request.user
        try:
            return page(own, **kwargs)
        except LedgerError as error:
            return errors.refused(request, error)
        except Http404:
            return errors.not_found(request)

    return served


def act_on(page: Page) -> Callable[[Page], Page]:
    """Serve what a form of `page` posts to, below `tenant_page`.

    Whoever opens the form's own address, as by reloading a refusal, is led to the page, if it is theirs to see.
    """

    def decorated(act: Page) -> Page:
        @wraps(act)
        def served(request: TenantRequest, **kwargs: Any) -> HttpResponseBase:
            request.acted_on = reverse(page.__name__, args=[request.tenant.slug, *kwargs.values()])
            if request.method == "POST":
                return act(request, **kwargs)
            if request.method not in {"GET", "HEAD"}:
                return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
            shown = page(request, slug=request.tenant.slug, **kwargs)
            return redirect(request.acted_on) if shown.status_code == 200 else shown

        return served

    return decorated


def signed_out(request: HttpRequest) -> HttpResponse:
    """Never a redirect for htmx, and never a silent loss of what somebody typed."""
    if request.method in {"GET", "HEAD"}:
        address = sign_in_address(request, request.get_full_path())
        if errors.is_htmx(request):
            address = sign_in_address(request, _seen_page(request))
            return HttpResponse(status=204, headers={"HX-Redirect": address})
        return redirect(address)
    if errors.is_htmx(request):
        return render(request, "partials/_signed_out.html", status=401)
    context = {"kept": errors.kept_text(request), "sign_in": sign_in_address(request, _seen_page(request))}
    return render(request, "401.html", context, status=401)


def onward(request: HttpRequest, address: str) -> HttpResponse:
    """Lead to another page after an act: by a redirect, or for htmx by a header, since it would follow a redirect out of sight."""
    if errors.is_htmx(request):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)


def sign_in_address(request: HttpRequest, after: str) -> str:
    """The sign-in page that leads back to `after`."""
    return f"{reverse('sign_in')}?{urlencode({'next': after})}"


def _seen_page(request: HttpRequest) -> str:
    """The page that the request was sent from, when it is one of ours."""
    seen = request.headers.get("HX-Current-URL") or request.headers.get("Referer") or ""
    parts = urlsplit(seen)
    if not url_has_allowed_host_and_scheme(seen, allowed_hosts={request.get_host()}) or not parts.path.startswith("/"):
        return "/"
    return parts.path + (f"?{parts.query}" if parts.query else "")


def caller(request: TenantRequest) -> Caller:
    """The signed-in person as services know a caller."""
    return Caller(request.tenant.pk, f"person:{request.person.pk}", person_id=request.person.pk)


def need(request: TenantRequest, verb: Verb, workflow: WorkflowType) -> None:
    """The person may do it on this workflow type. Raises Http404 when they can't even see it, LedgerError `forbidden` otherwise."""
    if permissions.can(request.person, verb, workflow):
        return
    if not permissions.can(request.person, Verb.SEE, workflow):
        raise Http404
    raise LedgerError(
        "forbidden",
        f"your account lacks the right to {str(verb).replace('_', ' ')} here",
        "An administrator of the tenant can give it.",
    )


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Lead to the inbox of the person's first tenant."""
    if not request.user.is_authenticated:
        return redirect("sign_in")
    own = Membership.objects.across_tenants().filter(user_id=request.user.pk, active=True)
    slug = own.order_by("created_at", "pk").values_list("tenant__slug", flat=True).first()
    return redirect("inbox", slug) if slug else render(request, "no_tenant.html")
