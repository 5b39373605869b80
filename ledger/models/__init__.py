"""The tables of the ledger, by noun."""

from ledger.models.authority import Grant, PolicyVersion
from ledger.models.base import Record, TenantModel, TenantQuerySet, Unscoped
from ledger.models.checkpoints import Body, Checkpoint, WorkflowType, WorkflowVersion
from ledger.models.effects import Effect, EffectReport, Observation, Permit, Target
from ledger.models.handoffs import Handoff
from ledger.models.identity import (
    Agent,
    ApiKey,
    Membership,
    TeamProfile,
    Tenant,
    TenantHead,
    User,
    Worker,
)
from ledger.models.journal import EntryTarget, JournalEntry
from ledger.models.permissions import (
    TenantGroupPermission,
    TenantUserPermission,
    WorkflowGroupPermission,
    WorkflowUserPermission,
)
from ledger.models.processes import Heartbeat
from ledger.models.runs import Clearance, Lease, Run, RunHead, TransitionInstance
from ledger.models.verifications import Verification, VerifiedChain
from ledger.models.waits import Event, EventDelivery, WaitMember, WaitSet
from ledger.models.wakes import Decision, Wake, WakeCheck

__all__ = [
    "Agent", "ApiKey", "Body", "Checkpoint", "Clearance", "Decision", "Effect", "EffectReport", "EntryTarget", "Event", "EventDelivery", "Grant",
    "Handoff", "Heartbeat", "JournalEntry", "Lease", "Membership", "Observation", "Permit", "PolicyVersion", "Record", "Run", "RunHead", "Target",
    "TeamProfile", "Tenant", "TenantGroupPermission", "TenantHead", "TenantModel", "TenantQuerySet", "TenantUserPermission", "TransitionInstance",
    "Unscoped", "User", "Verification", "VerifiedChain", "WaitMember", "WaitSet", "Wake", "WakeCheck", "Worker", "WorkflowGroupPermission",
    "WorkflowType", "WorkflowUserPermission", "WorkflowVersion",
]  # fmt: skip
