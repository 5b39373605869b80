"""Runs that this process holds, and the thread that keeps their leases."""

from __future__ import annotations

import logging
from collections import deque
from threading import Event, Lock, Thread

from resumeapp_client.client import Client
from resumeapp_client.errors import ResumeappError

log = logging.getLogger("resumeapp_client")

_REMEMBERED_CLAIMS = 1000


class Held:
    """One held run. `lost`: nothing more is written. `stop_after_call`: nothing new is begun. Either sets `disturbed`."""

    def __init__(self, run_id: str, fence: str) -> None:
        self.run_id = run_id
        self.fence = fence
        self.lost = False
        self.stop_after_call = False
        self.reason = ""
        self.disturbed = Event()
        self._used: set[tuple[str, int]] = set()

    def lose(self, reason: str) -> None:
        """From here on nothing more is written."""
        self.lost = True
        self.reason = self.reason or reason
        self.disturbed.set()

    def use(self, effect_id: str, attempt: int) -> bool:
        """Note that a call is made under this permit. False when one was made before."""
        if (effect_id, attempt) in self._used:
            return False
        self._used.add((effect_id, attempt))
        return True


class Leases:
    """All runs of a worker; one heartbeat call renews them, three times per lease: the shortest that the server gave."""

    def __init__(self, client: Client, worker_id: str, lease_seconds: float) -> None:
        self._client = client
        self._worker_id = worker_id
        self._every = lease_seconds / 3
        self._held: dict[str, Held] = {}
        self._seen: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED_CLAIMS)
        self._lock = Lock()
        self._ended = Event()
        self._hurried = Event()
        self._thread = Thread(target=self._beat, name="resumeapp-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the heartbeats; called when no run is held any more."""
        self._ended.set()
        self._hurried.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._every + 5)

    def take(self, run_id: str, fence: str, lease_seconds: float | None = None) -> Held | None:
        """Hold a claimed run; None when this very claim was delivered before. A new claim of a held run ends the old one.

        A lease that is shorter than those before makes the next heartbeat, and all that follow, come sooner.
        """
        if lease_seconds is not None and lease_seconds / 3 < self._every:
            self._every = lease_seconds / 3
            self._hurried.set()
        with self._lock:
            if (run_id, fence) in self._seen:
                return None
            self._seen.append((run_id, fence))
            older = self._held.get(run_id)
            if older is not None:
                older.lose("claimed again")
            held = self._held[run_id] = Held(run_id, fence)
            return held

    def renewed(self, held: Held, fence: str) -> None:
        """A commit kept the lease, maybe under another fence."""
        with self._lock:
            held.fence = fence

    def drop(self, held: Held) -> None:
        with self._lock:
            if self._held.get(held.run_id) is held:
                del self._held[held.run_id]

    def beat(self) -> None:
        """Renew all leases in one call, and note what the ledger says of each run. Raises ResumeappError."""
        with self._lock:
            sent = {held.run_id: (held, held.fence) for held in self._held.values()}
        if not sent:
            return
        pairs = [(run_id, fence) for run_id, (_, fence) in sent.items()]
        for said in self._client.heartbeat(self._worker_id, pairs, timeout=max(1.0, self._every)):
            held, fence = sent.get(said.run, (None, ""))
            if held is not None:
                self._obey(held, fence, said.directive, said.reason or "")

    def _obey(self, held: Held, fence: str, directive: str, reason: str) -> None:
        with self._lock:
            # An answer about a fence that a commit has replaced meanwhile says nothing about the new one.
            if held.fence != fence or directive == "go_on":
                return
            if directive == "stop_after_call":
                held.reason = reason
                held.stop_after_call = True
                held.disturbed.set()
            else:
                held.lose(reason)
        log.warning("run %s: the ledger says %s (%s)", held.run_id, directive, reason)

    def _beat(self) -> None:
        while not self._ended.is_set():
            if self._hurried.wait(self._every):
                self._hurried.clear()
                continue
            try:
                self.beat()
            except ResumeappError as error:
                log.warning("heartbeat failed: %s; trying again", error.code)
            except Exception as error:  # a heartbeat thread that dies loses every run it keeps
                log.error("heartbeat failed: %s; trying again", type(error).__name__)  # noqa: TRY400 - values stay out of logs
