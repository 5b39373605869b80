"""The console as an installed app."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """What people see and decide; what a decision permits is a row of the ledger."""

    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """The ledger asks people through its port, and sweeps what they left undecided. A deployment's renderers come after ours."""
        from django.conf import settings

        from approvals import renderers
        from approvals.services import policies, requests
        from approvals.services.asking import People
        from ledger.engine import sweep
        from ledger.services import ports

        ports.register(People())
        sweep.register("approvals", requests.expire_due)
        sweep.register("policies", policies.follow_due)
        renderers.load(settings.RESUMEAPP_RENDERERS)
