"""The console as an installed app."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """What people see and decide; what a decision permits is a row of the ledger."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """The ledger asks people through its port."""
        from approvals.services.asking import People
        from ledger.services import ports

        ports.register(People())
