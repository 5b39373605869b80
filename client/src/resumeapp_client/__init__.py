"""Agents that pause: a typed client, workflows, and a worker for a resumeapp server."""

from resumeapp_client.calls import Accepted, CallFailed, Done, Reply, TargetHttp
from resumeapp_client.client import Client
from resumeapp_client.context import Context, Step
from resumeapp_client.errors import (
    EffectCarried,
    EffectDenied,
    EffectDiffers,
    EffectEnded,
    EffectExpired,
    EffectGivenUp,
    EffectRejected,
    EffectsUnaccounted,
    EffectWithdrawn,
    EffectWrittenOff,
    OwnershipLost,
    RequestDiffers,
    ResumeappError,
    RunGivenBack,
    RunLost,
    StateMismatch,
    Unreachable,
)
from resumeapp_client.records import Effect, Packet, Permit, Run
from resumeapp_client.waits import approval, event, settled, timer
from resumeapp_client.wire import traceparent
from resumeapp_client.workers import Worker
from resumeapp_client.workflows import Workflow

__all__ = [
    "Accepted",
    "CallFailed",
    "Client",
    "Context",
    "Done",
    "Effect",
    "EffectCarried",
    "EffectDenied",
    "EffectDiffers",
    "EffectEnded",
    "EffectExpired",
    "EffectGivenUp",
    "EffectRejected",
    "EffectWithdrawn",
    "EffectWrittenOff",
    "EffectsUnaccounted",
    "OwnershipLost",
    "Packet",
    "Permit",
    "Reply",
    "RequestDiffers",
    "ResumeappError",
    "Run",
    "RunGivenBack",
    "RunLost",
    "StateMismatch",
    "Step",
    "TargetHttp",
    "Unreachable",
    "Worker",
    "Workflow",
    "approval",
    "event",
    "settled",
    "timer",
    "traceparent",
]
