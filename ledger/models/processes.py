"""Liveness of queue clusters: nothing of the record, and nothing is decided from it but whether to restart one."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """One cluster, by machine and session. `beats` counts heartbeat tasks that one of its workers has run."""

    name = models.CharField(max_length=80, primary_key=True)
    beats = models.BigIntegerField(default=0)
    pid = models.IntegerField(default=0)
    beaten_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
