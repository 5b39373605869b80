"""What every model of the record shares: ids made by us, a tenant, a fail-closed manager, and a record name.

`Model.objects` refuses to answer, or to change anything, before it is scoped to a tenant. Who says `across_tenants` instead is named with a
reason in `tests/conventions/test_tenants.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self
from uuid import UUID

from django.db import models


class Unscoped(RuntimeError):
    """A query over a tenant's table was about to run without a tenant."""


class TenantQuerySet(models.QuerySet[Any]):
    scoped = False

    def of(self, tenant: Any) -> Self:
        """The rows of one tenant (a Tenant or its id)."""
        found: Self = self.filter(tenant_id=getattr(tenant, "pk", tenant))
        found.scoped = True
        return found

    def across_tenants(self) -> Self:
        """Every tenant's rows: for the few callers that don't know the tenant yet, and for tests."""
        found: Self = self._chain()  # type: ignore[attr-defined]
        found.scoped = True
        return found

    def _clone(self) -> Self:
        clone: Self = super()._clone()  # type: ignore[misc]
        clone.scoped = self.scoped
        return clone

    def _fetch_all(self) -> None:
        self._refuse_unscoped()
        super()._fetch_all()

    def count(self) -> int:
        self._refuse_unscoped()
        return super().count()

    def exists(self) -> bool:
        self._refuse_unscoped()
        return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        self._refuse_unscoped()
        return super().aggregate(*args, **kwargs)

    def iterator(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse_unscoped()
        return super().iterator(*args, **kwargs)

    def update(self, **fields: Any) -> int:
        self._refuse_unscoped()
        return super().update(**fields)

    def delete(self) -> tuple[int, dict[str, int]]:
        self._refuse_unscoped()
        return super().delete()

    def _refuse_unscoped(self) -> None:
        if not self.scoped:
            raise Unscoped(f"{self.model.__name__}.objects was asked without a tenant: say .of(tenant)")


class TenantModel(models.Model):
    """A row of one tenant. The foreign key is not enforced by the database on hot tables: the writer takes it from the stream."""

    tenant = models.ForeignKey(
        "ledger.Tenant",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )

    objects = TenantQuerySet.as_manager()

    class Meta:
        abstract = True
        base_manager_name = "plain"
        default_permissions = ()

    plain: ClassVar[models.Manager[Any]] = models.Manager()


class Record(TenantModel):
    """A table of the record: written by the one writer only.

    `RECORD` is its name in Changes and journal entries; `UNJOURNALLED` names the attributes that never enter an entry (bytes, signs of life, what a
    body commits already); `COMMITTED` those that enter it only as a commitment under the salt of the entry's stream: whatever somebody outside
    words as they like; `LATER` those that entries of before don't carry, which are compared where they stand. All others are ids, codes, numbers,
    times and digests, which stand in the unerasable chain as they are. `MACHINE` is the column that says where a row's machine stands, which each
    of its entries names as read: `from` and `to`. `APPEND_ONLY` tables carry triggers
    against UPDATE, DELETE and TRUNCATE.
    """

    RECORD: ClassVar[str]
    UNJOURNALLED: ClassVar[frozenset[str]] = frozenset()
    COMMITTED: ClassVar[frozenset[str]] = frozenset()
    LATER: ClassVar[frozenset[str]] = frozenset()
    MACHINE: ClassVar[str | None] = None
    APPEND_ONLY: ClassVar[bool] = False

    class Meta(TenantModel.Meta):
        abstract = True


def record_id() -> models.UUIDField[UUID, UUID]:
    """A primary key that the service mints: time-ordered, so that indexes stay local."""
    return models.UUIDField(primary_key=True)


def stream_salt() -> models.BinaryField[bytes | None, bytes | None]:
    """The salt under which a stream's entries commit to texts: minted when the stream opens, erased with what it covers, never in an entry."""
    return models.BinaryField(max_length=16, null=True)


def salted_or_erased(name: str) -> models.CheckConstraint:
    """A named CHECK that a stream has its salt until it is erased."""
    whole = models.Q(salt__isnull=False, erased_at__isnull=True)
    return models.CheckConstraint(condition=whole | models.Q(salt__isnull=True, erased_at__isnull=False), name=name)


def within(field: str, values: Any, name: str) -> models.CheckConstraint:
    """A named CHECK that a code column holds one of an enum's values."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": [str(value) for value in values]}), name=name)
