"""The composition root as an installed app: system checks and management commands."""

from django.apps import AppConfig


class ResumeappConfig(AppConfig):
    """Registers the system checks and readiness checks of the deployment itself."""

    name = "resumeapp"

    def ready(self) -> None:
        """Import the modules whose import registers checks."""
        from resumeapp import checks, health

        checks.register()
        health.register_own_checks()
