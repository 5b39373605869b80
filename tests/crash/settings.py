"""Settings of the processes under test: the product's own, with short times and cheap passwords."""

from resumeapp.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
