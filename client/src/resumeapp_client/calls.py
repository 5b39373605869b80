"""A permitted call: what is sent, and what its end may be taken for.

Only a transport that failed before the first byte of the request is `not_dispatched`; only a target's definite refusal is
`rejected`. Everything that leaves a doubt is `unknown`, and the ledger asks the target.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import httpx2 as httpx
from pydantic_core import to_jsonable_python

from resumeapp_client.canonical import canonical
from resumeapp_client.clocks import monotonic
from resumeapp_client.errors import RequestDiffers
from resumeapp_client.records import Permit
from resumeapp_client.wire import encode, traceparent

log = logging.getLogger("resumeapp_client")

CONNECT_SECONDS = 10.0
REPLY_BYTES = 8 * 2**20
_BEFORE_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)
_NOT_DEFINITE = frozenset({408, 409, 425})
_THROTTLED = 429
_ABOUT_THE_KEY = re.compile(
    rb"idempot|key[ _-]?(?:re-?used|conflict|mismatch|in[ _-]?use|in[ _-]?progress)", re.IGNORECASE
)
_UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class Report:
    """How a call ended, as settle takes it. `ask_after_seconds` goes with accepted, `retry_after` (seconds) is the target's
    wish with throttled; `why` is for logs and holds no payload."""

    outcome: str
    cause: str | None = None
    reference: str | None = None
    result: Any = None
    ask_after_seconds: int | None = None
    retry_after: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """A call's result with the target's own reference for it, which is kept as text."""

    result: Any
    reference: Any = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The target took the request and will finish it later; the ledger asks again after so many seconds."""

    reference: Any = None
    ask_after_seconds: int | None = None


class CallFailed(Exception):
    """The call didn't end in a success; its report is settled whatever the agent's code does with this."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.why)
        self.report = report


@dataclass(frozen=True, slots=True)
class Reply:
    """A success (2xx) of the target, read to its end."""

    status: int
    headers: httpx.Headers
    content: bytes

    def json(self) -> Any:
        """The parsed body. Raises ValueError."""
        return json.loads(self.content)


class Call(Protocol):
    """What an agent writes: makes the one call through `http`, answers its result (JSON), Done or Accepted."""

    def __call__(self, http: TargetHttp, permit: Permit, /) -> Any: ...


class TargetHttp:
    """One request to the target under one permit: with the ledger's key, the precondition and the time limits; never repeated.

    Its body is the permitted request, whatever wraps the call. `transformed=True` says that this call sends the same in another form on purpose.
    `gone` says that the run was lost meanwhile: then nothing is sent either.
    """

    def __init__(
        self,
        permit: Permit,
        base_url: str,
        transport: httpx.BaseTransport | None,
        gone: Callable[[], bool],
    ) -> None:
        self._permit = permit
        self._base_url = base_url
        self._transport = transport
        self._gone = gone
        self._used = False
        self._dispatched = False
        self.verdict: Report | None = None
        self.status: int | None = None

    def post(self, url: str, **options: Any) -> Reply:
        """POST; without `json` or `content` the permitted request itself is the body, in the bytes that the ledger recorded."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> Reply:
        """PUT, as `post`."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Any) -> Reply:
        """PATCH, as `post`."""
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Any) -> Reply:
        """DELETE without a body: it says so with `transformed=True` where the permitted request isn't empty."""
        return self.request("DELETE", url, **{"content": b"", **options})

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = _UNSET,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        transformed: bool = False,
    ) -> Reply:
        """Send once and read the whole reply. Raises CallFailed for everything but a 2xx whose body is what it says it is.

        `url` is a path below the target's address. Raises RequestDiffers, with nothing sent, where it isn't, or where body or query say something
        else than the permitted request and the call doesn't say `transformed`.
        """
        if self._used:
            raise RuntimeError("one permit is for one request; propose a second effect for a second call")
        self._used = True
        self.verdict = Report("unknown", why="the call didn't end")
        sent = self._headers(headers)
        if content is None:
            content = canonical(self._permit.request if json is _UNSET else json)
            sent.setdefault("content-type", "application/json")
        self._check_permitted(url, content, params, transformed)
        try:
            reply = self._exchange(method, url, content, sent, params)
        except _TooLate as late:
            raise self._failed("failed", "not_dispatched", str(late)) from None
        except _BEFORE_CONNECTION as error:
            outcome, cause = ("unknown", None) if self._dispatched else ("failed", "not_dispatched")
            raise self._failed(outcome, cause, type(error).__name__) from None
        except (httpx.HTTPError, httpx.StreamError, _Unfinished, _Repeated) as error:
            raise self._failed("unknown", None, type(error).__name__.strip("_")) from None
        self._judge(reply)
        self.verdict = None
        return reply

    def _check_permitted(self, url: str, content: bytes, params: Mapping[str, str] | None, transformed: bool) -> None:
        """What was approved is what is sent, whatever has rewritten it on its way here."""
        split = urlsplit(url)
        if split.scheme or split.netloc or ".." in unquote(split.path).split("/"):
            raise self._differs(
                "the address isn't a path below the target's", "Call the effect's own target, by its path."
            )
        wanted = self._permit.request
        same = content == canonical(wanted) or (not content and not wanted)
        if (same and not params and not split.query) or (transformed and not self._permit.verbatim):
            return
        if transformed:
            raise self._differs(
                "this target is asked by sending the permitted request again, so that the call must be that request",
                "Send it as it is: http.post(path) does.",
            )
        raise self._differs(
            "body or query isn't the permitted request",
            "Propose what is to be sent, or say transformed=True where the call only puts it in the target's form.",
        )

    def _differs(self, reason: str, remedy: str) -> RequestDiffers:
        self.verdict = Report("failed", "not_dispatched", why=reason)
        return RequestDiffers("request-differs", reason, remedy)

    def _headers(self, given: Mapping[str, str] | None) -> dict[str, str]:
        sent = {name.lower(): value for name, value in (given or {}).items()}
        sent["idempotency-key"] = self._permit.key
        precondition = self._permit.precondition
        if isinstance(precondition, str) and precondition:
            sent["if-match"] = precondition
        elif isinstance(precondition, dict):
            sent |= {name.lower(): value for name, value in precondition.items()}
        trace = traceparent.get()
        if trace:
            sent.setdefault("traceparent", trace)
        return sent

    def _exchange(
        self, method: str, url: str, content: bytes, headers: dict[str, str], params: Mapping[str, str] | None
    ) -> Reply:
        self._check_time()
        now = monotonic()
        whole = max(0.001, self._permit.answer_before - now)
        connect = max(0.001, min(CONNECT_SECONDS, self._permit.send_before - now))
        # A connection of its own: none that the target may have closed meanwhile, and nothing that retries on one.
        with httpx.Client(
            base_url=self._base_url,
            transport=self._transport or httpx.HTTPTransport(retries=0, trust_env=False),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(whole, connect=connect),
        ) as client:
            request = client.build_request(
                method, url, content=content, headers=headers, params=params, extensions={"trace": self._trace}
            )
            reply = client.send(request, stream=True)
            try:
                self.status = reply.status_code
                return Reply(reply.status_code, reply.headers, self._read(reply))
            finally:
                reply.close()

    def _trace(self, event: str, _info: Mapping[str, Any]) -> None:
        # The last moment before the first byte: names were resolved and the connection stands, however long that took.
        if event.endswith("send_request_headers.started"):
            if self._dispatched:
                raise _Repeated  # A transport that tries again by itself: whether the first request arrived is for the ledger to ask.
            self._check_time()
            self._dispatched = True

    def _check_time(self) -> None:
        if self._gone():
            raise _TooLate("the run was lost before the call was sent")
        if monotonic() >= self._permit.send_before:
            raise _TooLate("send_by had passed before the call was sent")

    def _read(self, reply: httpx.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in reply.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > REPLY_BYTES or monotonic() >= self._permit.answer_before:
                raise _Unfinished
        return b"".join(parts)

    def _judge(self, reply: Reply) -> None:
        """Pass a success. Raises CallFailed for everything else."""
        status = reply.status
        if 200 <= status < 300:
            if reply.content and "json" in reply.headers.get("content-type", ""):
                try:
                    reply.json()
                except ValueError:
                    raise self._failed("unknown", None, f"{status} with a garbled body") from None
            return
        if status == _THROTTLED:
            raise self._failed("failed", "throttled", "429", _retry_after(reply))
        definite = 400 <= status < 500 and status not in _NOT_DEFINITE and not _ABOUT_THE_KEY.search(reply.content)
        if definite:
            raise self._failed("failed", "rejected", str(status))
        raise self._failed("unknown", None, str(status))

    def _failed(self, outcome: str, cause: str | None, why: str, retry_after: int | None = None) -> CallFailed:
        self.verdict = Report(outcome, cause, retry_after=retry_after, why=why)
        return CallFailed(self.verdict)


class _TooLate(Exception):
    """Nothing was sent, and nothing may be."""


class _Repeated(Exception):
    """Something under the call was about to send a second request."""


class _Unfinished(Exception):
    """The reply went on beyond the time or size it may have."""


def make(call: Call, http: TargetHttp, permit: Permit) -> Report:
    """Make the call and say how it ended. What `http` found out outranks what the agent's code returns or raises."""
    try:
        returned = call(http, permit)
        if http.verdict is not None:
            return http.verdict
        return _success(returned, http)
    except CallFailed as failed:
        return http.verdict or failed.report
    except RequestDiffers:
        raise  # A fault of the agent's code: it is settled as not dispatched, and then seen.
    except Exception as error:
        log.warning("the call of attempt %d raised %s; its outcome is unknown", permit.attempt, type(error).__name__)
        return Report("unknown", why=type(error).__name__)


def _success(returned: Any, http: TargetHttp) -> Report:
    reference = _text(returned.reference) if isinstance(returned, Accepted | Done) else None
    if isinstance(returned, Accepted):
        return Report("accepted", reference=reference, ask_after_seconds=returned.ask_after_seconds)
    if http.status == httpx.codes.ACCEPTED:
        return Report("accepted", reference=reference, why="202")
    result = returned.result if isinstance(returned, Done) else returned
    return Report("committed", reference=reference, result=_jsonable(result))


def _text(reference: Any) -> str | None:
    """A target's own id as the ledger keeps it, also where it is a number or a UUID. Raises UnicodeEncodeError for what is no text."""
    if reference is None:
        return None
    encode(text := str(reference))
    return text


def _jsonable(value: Any) -> Any:
    plain = to_jsonable_python(value, by_alias=True)
    encode(plain)
    return plain


def _retry_after(reply: Reply) -> int | None:
    header = reply.headers.get("retry-after", "")
    return int(header) if header.isdecimal() and len(header) < 5 else None
