"""Addresses of the record's pages: runs, reconcile, handoffs, history and its verification."""

from django.urls import path

from approvals.views import handoffs, history, reconcile, runs, verifications

urlpatterns = [
    path("runs/", runs.runs, name="runs"),
    path("runs/newer/", runs.runs_newer, name="runs_newer"),
    path("runs/<uuid:run_id>/", runs.run, name="run"),
    path("runs/<uuid:run_id>/newer/<slug:part>/", runs.run_newer, name="run_newer"),
    path("runs/<uuid:run_id>/verify/", verifications.run_verify, name="run_verify"),
    path("reconcile/", reconcile.reconcile, name="reconcile"),
    path("reconcile/newer/", reconcile.reconcile_newer, name="reconcile_newer"),
    path("reconcile/<uuid:effect_id>/", reconcile.effect, name="effect"),
    path("reconcile/<uuid:effect_id>/ask/", reconcile.effect_ask, name="effect_ask"),
    path("reconcile/<uuid:effect_id>/verdict/", reconcile.effect_verdict, name="effect_verdict"),
    path("handoffs/", handoffs.handoffs, name="handoffs"),
    path("handoffs/newer/", handoffs.handoffs_newer, name="handoffs_newer"),
    path("handoffs/<uuid:handoff_id>/", handoffs.handoff, name="handoff"),
    path("handoffs/<uuid:handoff_id>/own/", handoffs.handoff_own, name="handoff_own"),
    path("handoffs/<uuid:handoff_id>/give-back/", handoffs.handoff_give_back, name="handoff_give_back"),
    path("handoffs/<uuid:handoff_id>/close/", handoffs.handoff_close, name="handoff_close"),
    path("history/", history.history, name="history"),
    path("history/newer/", history.history_newer, name="history_newer"),
    path("history/export/", history.history_export, name="history_export"),
    path("history/<uuid:stream>/<int:seq>/", history.entry, name="entry"),
    path("history/verify/", verifications.history_verify, name="history_verify"),
    path("verifications/<uuid:check_id>/", verifications.verification, name="verification"),
    path("verifications/<uuid:check_id>/newer/", verifications.verification_newer, name="verification_newer"),
]
