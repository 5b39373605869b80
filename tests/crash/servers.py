"""Roles of the product's processes: set up, web, timer. Loaded once by the forge, before any connection."""

import socketserver
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.management import call_command

from resumeapp.wsgi import application
from tests.crash.points import Line
from tests.crash.statements import Plan, around


def migrate(args: dict[str, Any], report: int, control: int) -> None:
    """Make the tables."""
    call_command("migrate", verbosity=0)
    Line(report, control).say("done")


def seed(args: dict[str, Any], report: int, control: int) -> None:
    """Make `count` tenants, each with a person who approves, an agent with a key, a target and a policy."""
    from tests.crash.seed import tenant

    Line(report, control).say(
        "done", tenants=[tenant(args["payments"], args["call_limit"]) for _ in range(args["count"])]
    )


def guarantee(args: dict[str, Any], report: int, control: int) -> None:
    """Give the tenants' target another visibility delay, in seconds."""
    from tests.crash.seed import register_target

    for tenant_id in args["tenants"]:
        register_target(UUID(tenant_id), args["payments"], args["call_limit"], args["visibility_delay"])
    Line(report, control).say("done")


def timer(args: dict[str, Any], report: int, control: int) -> None:
    """The timer process; with `nth`, it blocks at that statement, counted from the first one that begins a wake."""
    line = Line(report, control)
    if args.get("nth"):
        plan = Plan(
            line, args["nth"], args["after"], lambda sql: "UPDATE ledger_wake " in sql or 'UPDATE "ledger_wake"' in sql
        )
        plan.install()
        plan.begin()
    line.say("started")
    call_command("timer")


def web(args: dict[str, Any], report: int, control: int) -> None:
    """A web server on `port`; with `nth`, it blocks at that statement of the first commit that has so many, counted from where it begins to write
    with `writing`."""
    line = Line(report, control)
    answering: Any = application
    if args.get("nth"):
        plan = Plan(line, args["nth"], args["after"], _writes if args["writing"] else lambda sql: True)
        plan.install()
        answering = around(application, plan, "/checkpoints")
    serve(args["port"], args["threads"], answering, line)


def serve(port: int, threads: int, answering: Any, line: Line) -> None:
    """Serve until killed; says `started` once requests are accepted."""
    with _Server(port, threads) as server:
        server.set_app(answering)
        line.say("started", port=server.server_port)
        server.serve_forever(poll_interval=0.5)


def _writes(sql: str) -> bool:
    return sql.startswith("BEGIN") or "INSERT INTO" in sql


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *values: Any) -> None:
        """The product has its own log."""

    def address_string(self) -> str:
        return str(self.client_address[0])


class _Server(WSGIServer):
    """A fixed number of threads, so that each keeps its database connection."""

    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, port: int, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads)
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._pool.submit(self._answer, request, client_address)

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass
        finally:
            self.shutdown_request(request)
