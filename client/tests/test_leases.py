"""How often a worker renews what it holds."""

from __future__ import annotations

from ledger_script import HEARTBEAT, RUN
from loopback import Loopback
from resumeapp_client import Client
from resumeapp_client.leases import Leases


def test_a_server_with_shorter_leases_than_the_worker_expects_is_beaten_to_in_time(
    ledger: Loopback, client: Client
) -> None:
    leases = Leases(client, "00000000-0000-4000-8000-000000000001", lease_seconds=600)
    leases.start()
    try:
        assert leases.take(RUN, "0.1", lease_seconds=0.3) is not None
        ledger.wait_for("POST", HEARTBEAT, 3)
    finally:
        leases.stop()


def test_a_longer_lease_slows_nothing_that_is_held_already(ledger: Loopback, client: Client) -> None:
    leases = Leases(client, "00000000-0000-4000-8000-000000000001", lease_seconds=0.3)
    leases.start()
    try:
        assert leases.take(RUN, "0.1", lease_seconds=600) is not None
        ledger.wait_for("POST", HEARTBEAT, 3)
    finally:
        leases.stop()
