"""Start the payment service: ``python -m examples.sandbox --port 0 --data DIR``."""

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from examples.sandbox.calls import World
from examples.sandbox.server import Server
from examples.sandbox.store import Store


def main() -> int:
    """Serve until SIGTERM or SIGINT; once ready, print a JSON line with address, pid and log."""
    parser = argparse.ArgumentParser(prog="python -m examples.sandbox", description="Payments with play money.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--data", type=Path, required=True, help="directory for its database and request log")
    options = parser.parse_args()
    world = World(Store(options.data))
    try:
        server = Server((options.host, options.port), world)
    except OSError as error:
        print(
            f"sandbox: can't listen on {options.host}:{options.port}: {error.strerror}",
            file=sys.stderr,
        )
        return 1

    def stop(signum: int, frame: FrameType | None) -> None:
        world.holds.release_everything()
        # shutdown() waits for the serving loop, which is the thread that this handler interrupted.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    host, port = server.server_address[:2]
    ready = {"address": f"http://{host!s}:{port}", "pid": os.getpid(), "log": str(world.store.file)}
    print(json.dumps(ready), flush=True)
    server.serve_forever(poll_interval=0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
