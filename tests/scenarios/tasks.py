"""What the agents of these tests know and send; for processes that have nothing of the product."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Task(BaseModel):
    """What the agents of these tests know."""

    name: str
    steps: int = 0


def note(task: Task) -> dict[str, Any]:
    """A note's content, the same for the same step."""
    return {"to": "ann@example.org", "subject": f"{task.name} {task.steps}", "text": "as agreed"}
