"""What differs in one copy of a golden run: ids, word, times, salts, and every digest that rests on them, by the product's own functions."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.loader.golden import WORD, Golden
from ledger.domain import journal
from ledger.domain.canonical import SALT_BYTES, commit, rfc3339
from ledger.domain.checkpoints import CheckpointFields, CheckpointKind, checkpoint_digest
from ledger.domain.effects import EffectRow, TargetRow, effect_key, subject_digest, subject_of
from ledger.domain.runs import Fence
from ledger.services import facts
from ledger.services.facts import Part
from ledger.services.ids import new_id

Values = dict[str, str]


@dataclass(frozen=True, slots=True)
class Stamp:
    """One copy: its values by slot, its bodies' contents and its entries' contents, in the golden run's order."""

    run_id: UUID
    values: Values
    contents: list[bytes]
    entries: list[bytes]


class Press:
    """Makes stamps of one golden run."""

    def __init__(self, golden: Golden) -> None:
        self.golden = golden
        self.bodies = list(golden.bodies.values())
        self.contents = golden.templates(body["content"].decode() for body in self.bodies)
        self.entries = golden.templates(entry["content"].decode() for entry in golden.entries)
        self.texts = golden.templates(text.decode() for text in golden.texts)
        self.checkpoints = sorted(golden.rows["checkpoint"], key=lambda row: row["seq"])
        self.effects = [facts.load(EffectRow, row) for row in golden.rows["effect"]]
        targets = facts.read(targets=Part("target", "t.tenant_id = %s", (golden.tenant_id,), many=True))
        self.targets = {target.id: target for target in targets.all("targets", TargetRow)}
        self.number = {each: number for number, each in enumerate(golden.ids)}
        self.minted = [datetime.fromtimestamp((each.int >> 80) / 1000, UTC) for each in golden.ids]
        self.of_commitment = {body["commitment"]: number for number, body in enumerate(self.bodies)}

    def stamp(self, word: str, shift: timedelta) -> Stamp:
        """A copy under a word as long as the golden one's, with every time shifted."""
        ids = [new_id(at + shift) for at in self.minted]
        return self._stamp(word, shift, ids, secrets.token_bytes(SALT_BYTES), lambda _: secrets.token_bytes(SALT_BYTES))

    def prove(self) -> None:
        """Stamp the golden run with what it has itself: each digest must be what services wrote. Raises ValueError for any other."""
        golden = self.golden
        own = list(golden.ids)
        made = self._stamp(WORD, timedelta(0), own, golden.salt, lambda number: self.bodies[number]["salt"])
        wrong = [name for text, name in golden.slots.items() if made.values[name] != text]
        if wrong or made.entries != [entry["content"] for entry in golden.entries]:
            raise ValueError(
                f"a copy of this run would not be what services write: {', '.join(sorted(wrong)) or 'entries'}"
            )

    def _stamp(
        self, word: str, shift: timedelta, ids: list[UUID], of_run: bytes, salt: Callable[[int], bytes]
    ) -> Stamp:
        if len(word) != len(WORD):
            raise ValueError(f"a copy's word has {len(WORD)} characters, as the golden run's")
        values: Values = {"word": word}
        for number, each in enumerate(ids):
            values[f"id{number}"] = str(each)
        for number, at in enumerate(self.golden.times):
            values[f"at{number}"] = rfc3339(at + shift)
        contents = [(template % values).encode() for template in self.contents]
        commitments = []
        for number, content in enumerate(contents):
            fresh = salt(number)
            commitments.append(commit(fresh, content))
            values[f"salt{number}"] = fresh.hex()
            values[f"commitment{number}"] = commitments[-1].hex()
        run_id = ids[self.number[self.golden.run_id]]
        self._checkpoints(values, run_id, ids, commitments, of_run)
        self._effects(values, ids, commitments, of_run)
        self._texts(values, of_run)
        return Stamp(run_id, values, contents, self._entries(values))

    def _checkpoints(
        self, values: Values, run_id: UUID, ids: list[UUID], commitments: list[bytes], of_run: bytes
    ) -> None:
        previous = bytes(32)
        for row in self.checkpoints:
            fields = CheckpointFields(
                run_id=run_id,
                seq=row["seq"],
                kind=CheckpointKind(row["kind"]),
                previous_digest=previous,
                last_transition=row["last_transition"],
                next_transition=row["next_transition"],
                instance_id=ids[self.number[row["instance_id"]]],
                version=row["version"],
                code_version=row["code_version"],
                fence=Fence(row["fence_epoch"], row["fence_count"]),
                state_commitment=commitments[self.of_commitment[row["state_commitment"]]],
                artifacts=tuple(row["artifacts"]),
            )
            previous = checkpoint_digest(fields, of_run)
            _digest(values, f"checkpoint{row['seq']}", previous)

    def _effects(self, values: Values, ids: list[UUID], commitments: list[bytes], of_run: bytes) -> None:
        for number, effect in enumerate(self.effects):
            lineage, instance = ids[self.number[effect.lineage_id]], ids[self.number[effect.opened_instance_id]]
            key = effect_key(self.golden.tenant_id, lineage, instance, effect.name)
            request = commitments[self.of_commitment[effect.request_commitment]]
            subject = replace(subject_of(effect, self.targets[effect.target_id]), key=key, request_commitment=request)
            values[f"key{number}"] = key
            _digest(values, f"subject{number}", subject_digest(subject, of_run))

    def _texts(self, values: Values, salt: bytes) -> None:
        """What entries say of texts under the copy's salt. Last: a text may name any other value."""
        values["salt"] = salt.hex()
        for number, text in enumerate(self.texts):
            values[f"text{number}"] = commit(salt, (text % values).encode()).hex()

    def _entries(self, values: Values) -> list[bytes]:
        """The entries' contents; their digests, each linked to the one before, go to the values."""
        contents = []
        previous = journal.GENESIS
        for template, entry in zip(self.entries, self.golden.entries, strict=True):
            content = (template % values).encode()
            previous = journal.link(previous, content)
            _digest(values, f"entry{entry['seq']}", previous)
            contents.append(content)
        return contents


def _digest(values: Values, name: str, digest: bytes) -> None:
    values[name] = digest.hex()
    values[f"{name}_short"] = values[name][:16]
