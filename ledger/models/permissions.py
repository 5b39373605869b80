"""Who may do what on which workflow type or in which tenant: guardian's rows with direct foreign keys."""

from __future__ import annotations

from django.db import models
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from ledger.models.checkpoints import WorkflowType
from ledger.models.identity import Tenant


class TenantUserPermission(UserObjectPermissionBase):
    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE)


class TenantGroupPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(Tenant, on_delete=models.CASCADE)


class WorkflowUserPermission(UserObjectPermissionBase):
    content_object = models.ForeignKey(WorkflowType, on_delete=models.CASCADE)


class WorkflowGroupPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(WorkflowType, on_delete=models.CASCADE)
