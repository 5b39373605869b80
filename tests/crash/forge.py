"""A parent that has loaded its modules once and forks processes from there: each with its own pid, session, log and pipes.

`python -m tests.crash.forge FD MODULE…` takes requests on the socket FD: JSON `{"role": "module:function", "args": {}, "log": path}` with two file
descriptors, the report pipe's writing end and the control pipe's reading end; answers `{"pid": …}`. It ends, and all its children with it, when
the socket is closed. It must stay single-threaded and without connections, so that a fork is as good as a fresh start. A child that gets SIGUSR1
writes where each of its threads stands to its log, and goes on.
"""

import ctypes
import faulthandler
import importlib
import json
import os
import signal
import socket
import sys
import traceback

_PDEATHSIG = 1
_LARGEST = 60_000


def main(arguments: list[str]) -> int:
    """Serve until the other end is gone."""
    _die_with(os.getppid())
    for module in arguments[1:]:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(arguments[0])) as harness:
        harness.send(json.dumps({"ready": os.getpid()}).encode())
        while True:
            message, descriptors, _, _ = socket.recv_fds(harness, _LARGEST, 2)
            if not message:
                return 0
            pid = os.fork()
            if pid == 0:
                harness.close()
                _become(json.loads(message), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            harness.send(json.dumps({"pid": pid}).encode())


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _become(request: dict[str, object], descriptors: list[int]) -> None:
    """The child: never returns."""
    code = 1
    try:
        _die_with(os.getppid())
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(str(request["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        faulthandler.register(signal.SIGUSR1, file=2)
        module, _, function = str(request["role"]).partition(":")
        getattr(importlib.import_module(module), function)(request["args"], *descriptors)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
