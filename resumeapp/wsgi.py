"""The WSGI application, for `granian --interface wsgi resumeapp.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "resumeapp.settings")

application = get_wsgi_application()

from ledger.engine import prompt  # noqa: E402, needs the applications
from ledger.services import bell  # noqa: E402, needs the applications

prompt.serve()
bell.listen()
