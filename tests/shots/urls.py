"""The product's addresses, and one for each page that is shown only when something goes wrong."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path

from approvals.views import errors
from tests.shots.scenes import WORST

handler404 = "approvals.views.errors.page_not_found"
TYPED = {"reason": "The photos show the crack; the courier has confirmed it.\nPlease pay today."}
REFUSALS: dict[str, tuple[str, str, str]] = {
    "409": ("wrong-state", "the handoff is closed already", "Open it to see what came of it."),
    "410": ("expired", "the time to decide ended at 14:00 UTC", "The agent may ask again."),
    "412": (
        "changed",
        "the order moved from version 12 to 13 after you opened the card",
        "Open it again and read what changed.",
    ),
    "422": ("invalid", "the page’s address is broken", "Start at the list’s first page."),
    "428": ("precondition-missing", "the form did not say which version you read", "Open the page again."),
    "hostile": ("changed", WORST, "Open it again and read what changed."),
}


def fault(request: HttpRequest, name: str) -> HttpResponse:
    """The page as the product renders it for a fault."""
    if name not in REFUSALS:
        return render(request, f"{name}.html", {"kept": TYPED, "sign_in": "/sign-in/"})
    code, reason, remedy = REFUSALS[name]
    status = int(name) if name.isdigit() else 412
    kept = TYPED if name.isdigit() else {"reason": WORST * 3}
    title = errors.TITLES[status]
    return render(
        request,
        "refusal.html",
        {"title": title, "status": status, "code": code, "reason": reason, "remedy": remedy, "kept": kept},
    )


urlpatterns = [path("fault/<str:name>/", fault), path("", include("resumeapp.urls"))]
