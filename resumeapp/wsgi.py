"""The WSGI application, for `granian --interface wsgi resumeapp.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "resumeapp.settings")

application = get_wsgi_application()
