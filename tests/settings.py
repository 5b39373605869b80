"""Settings of the tests: the product's own, on the database that `RESUMEAPP_TEST_DB` names.

The server behind `postgres` is started by the plugin `tests.database` before this is imported.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("RESUMEAPP_MODE", "test")
os.environ.setdefault("RESUMEAPP_LOG_LEVEL", "WARNING")
os.environ.setdefault("RESUMEAPP_HINTS", "false")
if "RESUMEAPP_VAR" not in os.environ:
    os.environ["RESUMEAPP_VAR"] = tempfile.mkdtemp(prefix="resumeapp-test-")

from resumeapp.settings import *  # noqa: F403
from resumeapp.settings import DATABASES, VAR
from tests import templates

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, not memory: live servers, worker processes and threads have connections of their own.
    DATABASES["default"]["TEST"] = {"NAME": str(Path(VAR) / "test.sqlite3")}
else:
    # Also where the server is somebody else's: it was started on a copy of the template's data.
    DATABASES["default"]["TEST"] = {"TEMPLATE": templates.DATABASE}
