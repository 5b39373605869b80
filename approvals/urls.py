"""The console's addresses: a page's name is its template's and its test's."""

from django.urls import include, path

from approvals.views import access, approvals, design, inbox, record_urls

urlpatterns = [
    path("", access.home, name="home"),
    path("t/<slug:slug>/inbox/", inbox.inbox, name="inbox"),
    path("t/<slug:slug>/inbox/newer/", inbox.inbox_newer, name="inbox_newer"),
    path("t/<slug:slug>/approvals/<uuid:request_id>/", approvals.approval, name="approval"),
    path("t/<slug:slug>/approvals/<uuid:request_id>/newer/", approvals.approval_newer, name="approval_newer"),
    path("t/<slug:slug>/approvals/<uuid:request_id>/look/", approvals.approval_look, name="approval_look"),
    path("t/<slug:slug>/approvals/<uuid:request_id>/withdraw/", approvals.approval_withdraw, name="approval_withdraw"),
    path("t/<slug:slug>/approvals/<uuid:request_id>/revoke/", approvals.approval_revoke, name="approval_revoke"),
    path("t/<slug:slug>/approvals/<uuid:request_id>/decide/", approvals.approval_decide, name="approval_decide"),
    path("t/<slug:slug>/design/", design.design, name="design"),
    path("t/<slug:slug>/", include(record_urls)),
]
