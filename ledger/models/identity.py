"""Who there is: people, tenants, memberships, teams, agents, keys, worker processes."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, Group, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower

from ledger.models.base import Record, TenantModel, record_id, salted_or_erased, stream_salt


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def get_by_natural_key(self, username: str | None) -> User:
        """By the login, which is kept in lower case."""
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A person, over all tenants; the e-mail address is the login."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]
    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_unique")]

    def get_full_name(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


class Tenant(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        permissions = [
            ("see", "See runs and their record"),
            ("see_payloads", "See arguments, states and evidence"),
            ("approve", "Approve what agents ask for"),
            ("operate", "Reconcile, hand over, hold, cancel"),
            ("audit", "Read the history and verify it"),
            ("administer", "Keep people, keys, policies and versions"),
            ("break_glass", "Act alone in an emergency"),
        ]

    def __str__(self) -> str:
        return self.name


class TenantHead(Record):
    """The head of a tenant's administration: its sequence is the version of everything administrative."""

    RECORD = "tenant_head"
    UNJOURNALLED = frozenset({"salt"})

    tenant = models.OneToOneField(Tenant, on_delete=models.PROTECT, primary_key=True, related_name="head")
    head_seq = models.BigIntegerField()
    head_digest = models.BinaryField(max_length=32)
    epoch = models.IntegerField(default=0)
    salt = stream_salt()
    erased_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "ledger_tenant_head"
        constraints = [salted_or_erased("tenant_head_salted_or_erased")]


class Membership(TenantModel):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="membership_unique")]


class TeamProfile(TenantModel):
    """A team of one tenant. Its people are those of an auth group named `<tenant>:<slug>`, reached only from here."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=60)
    group = models.OneToOneField(Group, on_delete=models.PROTECT, related_name="team")

    class Meta(TenantModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="team_slug_unique")]


class Agent(Record):
    RECORD = "agent"
    COMMITTED = frozenset({"name"})
    MACHINE = "active"

    id = record_id()
    name = models.CharField(max_length=80)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="agents")
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="agent_name_unique")]


class ApiKey(Record):
    """A bearer key: shown once, kept as SHA-256 of 256 random bits, found by its readable prefix.

    `workflows` are the names of the types that it is for (`*`: all), `emits` the types and sources of events that it may emit; neither ever changes.
    """

    RECORD = "api_key"
    UNJOURNALLED = frozenset({"last_used_at"})
    COMMITTED = frozenset({"label", "emits", "hash"})
    LATER = frozenset({"hash"})
    MACHINE = "revoked_at"

    id = record_id()
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.BinaryField(max_length=32)
    label = models.CharField(max_length=80)
    scopes = models.JSONField()
    workflows = models.JSONField(default=list, db_default=[])
    emits = models.JSONField(default=list, db_default=[])
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, null=True, related_name="keys")
    person = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="keys")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "ledger_api_key"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(agent__isnull=True, person__isnull=False)
                | models.Q(agent__isnull=False, person__isnull=True),
                name="api_key_of_agent_or_person",
            ),
        ]


class Worker(TenantModel):
    """One start of one worker process. Liveness only, like a lease: nothing is decided from it."""

    id = models.UUIDField(primary_key=True)
    key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="workers")
    name = models.CharField(max_length=80)
    code_digest = models.CharField(max_length=80)
    offers = models.JSONField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "-seen_at"], name="worker_seen")]
