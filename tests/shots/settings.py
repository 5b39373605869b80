"""Settings of the pictures: the tests' own on SQLite, with addresses for pages that only a fault shows."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

ROOT_URLCONF = "tests.shots.urls"
# What is thrown away need not survive a power cut.
DATABASES["default"]["OPTIONS"]["init_command"] += "; PRAGMA synchronous=OFF"
