"""The role of an agent's worker: the client's Worker over transports that report what was acknowledged, and block at kill points."""

import json
import os
import re
from typing import Any

import httpx2 as httpx
from resumeapp_client import Client, Worker

from tests.crash import agents
from tests.crash.points import Line

PATIENCE_SECONDS = 30.0
_CHECKPOINTS = re.compile(r"/runs/([^/]+)/checkpoints$")
_EFFECTS = re.compile(r"/runs/([^/]+)/effects$")
_ONE_EFFECT = re.compile(r"/effects/([^/]+)/(permit|settle)$")


def work(args: dict[str, Any], report: int, control: int) -> None:
    """Work as `flow` until stopped. `point` is where to block: `claimed`, `before_call`, `called`, `settled`, `waiting`, `commit_reply`; or
    `zombie`, twice."""
    line = Line(report, control)
    flow = agents.FLOWS[args["flow"]]
    line.say("started", digest=flow.code_digest(), version=flow.version, session=os.getsid(0))
    point = args.get("point", "")
    agents.payments = args["payments"]
    with Client(args["server"], args["key"], transport=Api(line, point), patience=PATIENCE_SECONDS) as client:
        Worker(
            client,
            [flow],
            lease_seconds=args["lease"],
            wait_seconds=1,
            name=f"crash:{os.getpid()}",
            targets={"payments": args["payments"]},
            target_transport=lambda: Target(line, point),
        ).run()


class Api(httpx.BaseTransport):
    """To the server. An answer is reported before the client's code sees it: from then on it counts as acknowledged."""

    def __init__(self, line: Line, point: str) -> None:
        self._line = line
        self._point = point
        self._inner = httpx.HTTPTransport(trust_env=False, verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        reply = self._inner.handle_request(request)
        reply.read()
        path = request.url.path
        if self._point == "claimed" and path.endswith("/claim") and reply.status_code == 200:
            self._block("claimed")
        if request.method == "POST" and not path.endswith(("/claim", "/heartbeat")):
            asked = json.loads(request.content or b"{}")
            self._report(path, asked, reply)
            self._maybe_block(path, asked, reply)
        return reply

    def _report(self, path: str, asked: Any, reply: httpx.Response) -> None:
        if reply.status_code >= 400:
            self._line.say("refused", path=path, status=reply.status_code, code=_code(reply), met=list(agents.seen))
            return
        for ack in acknowledged(path, asked, _body(reply)):
            self._line.say("ack", ack=ack)

    def _maybe_block(self, path: str, asked: Any, reply: httpx.Response) -> None:
        if self._point == "zombie" and path.endswith("/settle"):
            self._block("told")
        if reply.status_code >= 400:
            return
        if self._point == "settled" and path.endswith("/settle") and asked["outcome"] == "committed":
            self._block("settled")
        if self._point == "waiting" and _CHECKPOINTS.search(path) and asked["next"]["kind"] == "wait":
            self._block("waiting")
        if self._point == "commit_reply" and _CHECKPOINTS.search(path):
            self._block("commit_reply", seq=_body(reply)["seq"])
            raise httpx.ReadError("the reply was lost")

    def _block(self, point: str, **fields: Any) -> None:
        self._point = ""
        self._line.block(point, **fields)

    def close(self) -> None:
        self._inner.close()


def _body(reply: httpx.Response) -> Any:
    return json.loads(reply.content) if reply.content else {}


def _code(reply: httpx.Response) -> str:
    try:
        return str(_body(reply).get("code", ""))
    except ValueError:
        return ""


def acknowledged(path: str, asked: Any, answer: Any) -> list[dict[str, Any]]:
    """What an answer promises to be in the record."""
    if _CHECKPOINTS.search(path):
        return [{"kind": "checkpoint", "seq": answer["seq"], "digest": answer["digest"]}]
    if _EFFECTS.search(path):
        return [{"kind": "effect", "effect": answer["id"]}]
    found = _ONE_EFFECT.search(path)
    if found is None:
        return []
    effect, verb = found.groups()
    if verb == "permit":
        return [{"kind": "permit", "effect": effect, "attempt": answer["permit"]["attempt"]}]
    return [{"kind": "settle", "effect": effect, "attempt": asked["attempt"], "outcome": asked["outcome"]}]


class Target(httpx.BaseTransport):
    """To the target: one call under one permit."""

    def __init__(self, line: Line, point: str) -> None:
        self._line = line
        self._point = point
        self._inner = httpx.HTTPTransport(retries=0, trust_env=False, verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._point in ("before_call", "zombie"):
            self._point = ""
            self._line.block("before_call", key=request.headers.get("idempotency-key", ""))
        self._line.say("sending", key=request.headers.get("idempotency-key", ""))
        reply = self._inner.handle_request(request)
        if self._point == "called":
            self._point = ""
            self._line.block("called")
        return reply

    def close(self) -> None:
        self._inner.close()
