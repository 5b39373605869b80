"""Django's PostgreSQL backend, on connections that give a silent server up: the option `patience` says after how many seconds."""

from types import ModuleType

import psycopg
from django.db.backends.postgresql import base

from resumeapp.postgres.connection import Patient

_driver = ModuleType("psycopg")
vars(_driver).update(vars(psycopg), connect=Patient.connect)


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, but for the class of its connections."""

    Database = _driver
