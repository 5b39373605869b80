"""Structured logs, one JSON object a line, that never carry secrets or payloads."""

import re
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

HIDDEN: Final = "[hidden]"
_SECRET_NAME: Final = re.compile(
    r"authori[sz]ation|cookie|secret|passw|token|api[_-]?key|csrf|session|body|payload|signature",
    re.IGNORECASE,
)
_SECRET_TEXT: Final = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[^\s\"',;]+|\b(?:authorization|(?:set-)?cookie)\s*[:=][^\r\n]*"
)
_URL_PASSWORD: Final = re.compile(r"(://[^:/?#\s@]+:)[^@/\s]+@")


def hide_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A structlog processor: fields named like secrets or bodies, and credentials in text, go."""
    cleaned: EventDict = _clean(event)
    return cleaned


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: HIDDEN if _SECRET_NAME.search(str(key)) else _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return HIDDEN
    if isinstance(value, str):
        return _URL_PASSWORD.sub(rf"\1{HIDDEN}@", _SECRET_TEXT.sub(HIDDEN, value))
    return value


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]


def configure(level: str) -> dict[str, Any]:
    """Set up structlog and return Django's `LOGGING`, so that both write the same lines."""
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _shared(),
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    hide_secrets,
                    structlog.processors.JSONRenderer(),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"level": level, "handlers": [], "propagate": True},
            "django.server": {"level": level, "handlers": [], "propagate": True},
            "django-q": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
            "httpx2": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
            "django_q": {"level": "WARNING", "handlers": ["stderr"], "propagate": False},
        },
    }
