"""Addresses of lists as people share them."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect

from approvals.views.access import TenantRequest


def tidied(request: TenantRequest) -> HttpResponse | None:
    """Lead to the same address without what a form left empty; None where nothing is."""
    asked = [(name, value) for name, values in request.GET.lists() for value in values]
    if all(value for _, value in asked):
        return None
    told = urlencode([(name, value) for name, value in asked if value])
    return redirect(f"{request.path}?{told}" if told else request.path)
