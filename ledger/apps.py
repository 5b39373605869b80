"""The ledger as an installed app."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class LedgerConfig(AppConfig):
    """The system of record; it never imports the console."""

    name = "ledger"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Triggers follow every migration, of any app with tables of the record; SQLite learns the clock."""
        from ledger.models import triggers

        connection_created.connect(triggers.register_clock)
        post_migrate.connect(_install, dispatch_uid="ledger-triggers")


def _install(using: str = "default", **_: object) -> None:
    from ledger.models import triggers

    triggers.install(using)
