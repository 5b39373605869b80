"""The ASGI application, for `granian --interface asgi resumeapp.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("RESUMEAPP_PROCESS", "asgi")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "resumeapp.settings")

application = get_asgi_application()

from ledger.engine import prompt  # noqa: E402, needs the applications
from ledger.services import bell  # noqa: E402, needs the applications

prompt.serve()
bell.listen()
