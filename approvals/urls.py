"""The console's addresses: a page's name is its template's and its test's."""

from django.urls import path

from approvals.views import access, inbox

urlpatterns = [
    path("", access.home, name="home"),
    path("t/<slug:slug>/inbox/", inbox.inbox, name="inbox"),
    path("t/<slug:slug>/inbox/newer/", inbox.inbox_newer, name="inbox_newer"),
]
