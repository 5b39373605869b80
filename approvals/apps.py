"""The console as an installed app."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """What people see and decide; what a decision permits is a row of the ledger."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
