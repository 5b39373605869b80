"""The console's addresses: a page's name is its template's and its test's."""

from django.urls import include, path

from approvals.views import access, inbox, record_urls

urlpatterns = [
    path("", access.home, name="home"),
    path("t/<slug:slug>/inbox/", inbox.inbox, name="inbox"),
    path("t/<slug:slug>/inbox/newer/", inbox.inbox_newer, name="inbox_newer"),
    path("t/<slug:slug>/", include(record_urls)),
]
