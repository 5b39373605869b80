"""The product's addresses, and one for each page that is shown only when something goes wrong."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path

handler404 = "approvals.views.errors.page_not_found"
TYPED = {"reason": "The photos show the crack; the courier has confirmed it.\nPlease pay today."}
FAULTS = ("401", "403", "403_csrf", "500", "no_tenant", "refusal")


def fault(request: HttpRequest, name: str) -> HttpResponse:
    """The page as the product renders it for a fault."""
    context = {
        "kept": TYPED,
        "sign_in": "/sign-in/",
        "title": "Not done: it changed while you looked",
        "status": 412,
        "code": "changed",
        "reason": "the order moved from version 12 to 13 after you opened the card",
        "remedy": "Open it again and read what changed.",
    }
    return render(request, f"{name}.html", context)


urlpatterns = [path("fault/<str:name>/", fault), path("", include("resumeapp.urls"))]
