"""Claim, heartbeat, release."""

from __future__ import annotations

import time
from threading import BoundedSemaphore
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger.api import auth
from ledger.api.answers import answer, nothing
from ledger.api.shapes.effects import FenceBody
from ledger.api.shapes.leases import ClaimAnswer, ClaimBody, HeartbeatAnswer, HeartbeatBody, packet_json
from ledger.domain.identity import Caller
from ledger.domain.leases import Offer
from ledger.domain.runs import Fence
from ledger.services import bell, leases
from ledger.services.packets import Packet

router = Router(tags=["runs"], by_alias=True)

LOOK_EVERY = 0.25
"""Seconds between two looks of a waiting claim that no bell calls."""
LOOK_AFTER = 0.01
"""Seconds between two looks of a waiting claim at least, however often the bell rings."""
WAITING_AT_ONCE = 2
"""A waiting claim keeps a thread of the server; this many may wait in one process, the others get their answer after one more look."""
_seats = BoundedSemaphore(WAITING_AT_ONCE)


@router.post("/runs/claim", auth=auth.WORK, response={200: ClaimAnswer, 204: None})
def claim_runs(request: HttpRequest, body: ClaimBody) -> HttpResponse:
    """Take ready runs. 204 when there is none within `wait_seconds`; where too many wait already it comes sooner, with Retry-After."""
    offer = body.offer(settings.RESUMEAPP_LEASE_SECONDS)
    packets, seated = _wait_for(auth.caller(request), offer, body.wait_seconds)
    if packets:
        return answer({"packets": [packet_json(packet, holder=True) for packet in packets]})
    response = nothing()
    if not seated:
        response["Retry-After"] = "1"
    return response


def _wait_for(caller: Caller, offer: Offer, seconds: float) -> tuple[list[Packet], bool]:
    """Look until there is something or time is up; no transaction is open between two looks."""
    if not seconds:
        return leases.claim(caller, offer), True
    heard = bell.heard()
    packets = leases.claim(caller, offer)
    if packets:
        return packets, True
    seated = _seats.acquire(blocking=False)
    try:
        until = time.monotonic() + (seconds if seated else LOOK_EVERY)
        while not packets and (left := until - (looked := time.monotonic())) > 0:
            bell.wait(min(LOOK_EVERY, left), heard)
            time.sleep(max(0.0, looked + LOOK_AFTER - time.monotonic()))
            heard = bell.heard()
            packets = leases.claim(caller, offer)
        return packets, seated
    finally:
        if seated:
            _seats.release()


@router.post("/heartbeat", auth=auth.REPORT, response=HeartbeatAnswer)
def heartbeat(request: HttpRequest, body: HeartbeatBody) -> HttpResponse:
    """Renew all leases of a worker; says per run whether to go on."""
    held = [(each.run, Fence.parse(each.fence)) for each in body.runs]
    beats = leases.heartbeat(auth.caller(request), body.worker, held)
    return answer(
        {
            "runs": [
                {
                    "run": beat.run_id,
                    "directive": beat.directive,
                    "reason": beat.reason,
                    "lease_expires_at": beat.lease_expires_at,
                }
                for beat in beats
            ]
        }
    )


@router.post("/runs/{uuid:run_id}/release", auth=auth.WORK, response={204: None})
def release_run(request: HttpRequest, run_id: UUID, body: FenceBody) -> HttpResponse:
    """Give a run back: it wakes, and somebody may claim it. Refused while a permit is out."""
    leases.release(auth.caller(request), run_id, Fence.parse(body.fence))
    return nothing()
