"""Where the product's source tree is, for tests against the real server."""

from __future__ import annotations

import os
from pathlib import Path

from resumeapp_client.testing import DIRECTORY

ROOT = Path(os.environ.get(DIRECTORY) or Path(__file__).resolve().parents[2])
