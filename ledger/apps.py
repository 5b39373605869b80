"""The ledger as an installed app."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """The system of record; it never imports the console."""

    name = "ledger"
    default_auto_field = "django.db.models.BigAutoField"
