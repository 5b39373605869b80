"""The tables of people's decisions."""

from approvals.models.requests import ApprovalRequest, Revision, Vote

__all__ = ["ApprovalRequest", "Revision", "Vote"]
