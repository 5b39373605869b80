"""The ASGI application, for `granian --interface asgi resumeapp.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("RESUMEAPP_PROCESS", "asgi")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "resumeapp.settings")

application = get_asgi_application()
