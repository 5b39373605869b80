"""Every setting, read once through `resumeapp.env`; each variable is described where it is read.

`RESUMEAPP_MODE` is `production` (the default, everything explicit), `demo` (`make run`) or `test`.
"""

from pathlib import Path

from resumeapp import logs
from resumeapp.databases import database, process_kinds
from resumeapp.env import Env

BASE_DIR = Path(__file__).resolve().parent.parent

env = Env()

MODE = env.text("RESUMEAPP_MODE", "production", "`production`, `demo` or `test`.")
if MODE not in {"production", "demo", "test"}:
    env.faults.append("RESUMEAPP_MODE: expected production, demo or test")
_local = MODE in {"demo", "test"}

VAR = Path(
    env.text(
        "RESUMEAPP_VAR",
        str(BASE_DIR / "var"),
        "Directory for what the program keeps outside the database; SQLite lives here too.",
    )
).resolve()
VAR.mkdir(parents=True, exist_ok=True, mode=0o700)

# Security -----------------------------------------------------------------------------------
SECRET_KEY = env.secret(
    "RESUMEAPP_SECRET_KEY",
    VAR / "secret_key" if _local else None,
    "Signs sessions and queue messages; at least 32 characters, the same in every process.",
)
SECRET_KEY_FALLBACKS = env.names(
    "RESUMEAPP_SECRET_KEY_FALLBACKS", "", "Earlier secret keys, still accepted while rotating."
)
DEBUG = env.boolean("RESUMEAPP_DEBUG", False, "Django's debug pages; refused in production.")
ALLOWED_HOSTS = env.names(
    "RESUMEAPP_ALLOWED_HOSTS",
    "localhost,127.0.0.1,[::1],testserver" if _local else "",
    "Host names this deployment answers to, separated by commas.",
)
CSRF_TRUSTED_ORIGINS = env.urls("RESUMEAPP_TRUSTED_ORIGINS", "", "Origins that may post forms when a proxy ends TLS.")
HTTPS = env.boolean("RESUMEAPP_HTTPS", not _local, "Cookies only over HTTPS, HSTS, and redirects to HTTPS.")
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
if env.boolean("RESUMEAPP_BEHIND_PROXY", False, "Trust X-Forwarded-Proto: only behind a proxy that sets it."):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = False  # htmx reads the token at send time, so a rotated one is never stale
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "resumeapp_session"
CSRF_COOKIE_NAME = "resumeapp_csrf"
CSRF_FAILURE_VIEW = "approvals.views.errors.csrf_failure"
SESSION_COOKIE_AGE = int(
    env.duration("RESUMEAPP_SESSION_AGE", "12h", "How long a person stays signed in.").total_seconds()
)
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    }
}

# Applications -------------------------------------------------------------------------------
INSTALLED_APPS = [
    "resumeapp.apps.ResumeappConfig",
    "approvals.apps.ApprovalsConfig",
    "ledger.apps.LedgerConfig",
    "guardian",
    "django_q",
    "django_htmx",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "ledger.api.edge.ApiEdge",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "approvals.middleware.unstored",
]
ROOT_URLCONF = "resumeapp.urls"
WSGI_APPLICATION = "resumeapp.wsgi.application"
ASGI_APPLICATION = "resumeapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "approvals.context.console",
            ],
        },
    }
]

# People -------------------------------------------------------------------------------------
AUTH_USER_MODEL = "ledger.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
# The login is unique by a constraint on its lower-case form, which this check can't see.
SILENCED_SYSTEM_CHECKS = ["auth.W004"]
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
GUARDIAN_MONKEY_PATCH_GROUP = False
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "sign_in"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
_validation = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_validation}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_validation}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_validation}.CommonPasswordValidator"},
    {"NAME": f"{_validation}.NumericPasswordValidator"},
]

# Database -----------------------------------------------------------------------------------
PROCESS = env.text(
    "RESUMEAPP_PROCESS",
    "web",
    "What this process is, for its connections: `web` (WSGI), `asgi`, `cluster` or `timer`.",
)
if PROCESS not in process_kinds():
    env.faults.append(f"RESUMEAPP_PROCESS: expected one of {', '.join(process_kinds())}")
_database_url = env.text("DATABASE_URL", "", "PostgreSQL as `postgres://user@host:port/name`; empty means SQLite.")
_statement_timeout = env.duration(
    "RESUMEAPP_STATEMENT_TIMEOUT", "30s", "PostgreSQL gives up on a statement after this long."
)
DATABASES = {}
try:
    DATABASES["default"] = database(_database_url, VAR / "resumeapp.sqlite3", PROCESS, _statement_timeout)
except ValueError as fault:
    env.faults.append(f"DATABASE_URL: {fault}")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Queue: a wake-up mechanism; rows are the truth and a sweep repairs lost hints -----------------
_workers = env.integer("RESUMEAPP_WORKERS", 2, "Workers of one queue cluster.", low=1, high=64)
_task_timeout = int(
    env.duration("RESUMEAPP_TASK_TIMEOUT", "60s", "A queue task is killed after this long.").total_seconds()
)
Q_CLUSTER = {
    "name": "resumeapp",
    "orm": "default",
    "workers": _workers,
    "queue_limit": _workers,
    "bulk": 1,
    "timeout": _task_timeout,
    # The retry clock starts when a task is pulled, not when it starts to run.
    "retry": 2 * _task_timeout + 60,
    "max_attempts": 5,
    "ack_failures": True,
    "save_limit": -1,
    "poll": 0.2,
    "catch_up": False,
    "recycle": 500,
    "log_level": "WARNING",
    "label": "queue",
}

# Files --------------------------------------------------------------------------------------
STATIC_URL = "static/"
# Where files are served from the source tree there is nothing to collect.
STATIC_ROOT = None if _local else BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"] if (BASE_DIR / "static").is_dir() else []
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if _local
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = _local

# Language, time, logs -----------------------------------------------------------------------
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False
LOGGING = logs.configure(env.text("RESUMEAPP_LOG_LEVEL", "INFO", "Least level that is logged, as JSON lines.").upper())

# Product ------------------------------------------------------------------------------------
RESUMEAPP_LEASE_SECONDS = env.integer(
    "RESUMEAPP_LEASE_SECONDS", 60, "A worker keeps a run this long without a heartbeat.", low=1
)
RESUMEAPP_SEND_BY_SECONDS = env.integer(
    "RESUMEAPP_SEND_BY_SECONDS",
    30,
    "A permitted call must be sent within this time, and never beyond the lease.",
    low=1,
)
RESUMEAPP_CHECK_SECONDS = env.integer(
    "RESUMEAPP_CHECK_SECONDS", 30, "Who checks a wake is taken for dead after this long, and another one does.", low=1
)
RESUMEAPP_STATE_LIMIT_BYTES = env.integer(
    "RESUMEAPP_STATE_LIMIT_BYTES",
    1_048_576,
    "Largest typed state of a checkpoint; keep more in a store of your own, with its address and digest in the state.",
    low=1_024,
)
RESUMEAPP_REQUESTS_PER_MINUTE = env.integer(
    "RESUMEAPP_REQUESTS_PER_MINUTE",
    0,
    "API calls that one key may make a minute, in each web process; heartbeats and settles don't count. 0: any number.",
)
RESUMEAPP_REQUESTS_AT_ONCE = env.integer(
    "RESUMEAPP_REQUESTS_AT_ONCE", 60, "Of these, how many may come without a pause.", low=1
)
RESUMEAPP_RENDERERS = env.names(
    "RESUMEAPP_RENDERERS", "", "Modules that register renderers for your tools; each is imported at start."
)
RESUMEAPP_HINTS = env.boolean(
    "RESUMEAPP_HINTS", True, "Tell the queue at once what became due; without it the timer finds the rows."
)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * RESUMEAPP_STATE_LIMIT_BYTES + 262_144

env.check()
