"""What an agent asks for, in our words: a renderer per tool turns checked arguments into verb, object and place, what would change, and what else
it touches.

A deployment adds its own (docs/operations.md, "Renderers for your tools"). A tool without a renderer, arguments that it doesn't know, a renderer
that fails or that answers what can't be shown get the cautious default. No renderer hides anything: the complete arguments stand below in any case.
"""

from approvals.renderers import built_in
from approvals.renderers.registry import load, renders, words_for
from approvals.renderers.words import Asked, Difference, Words, amount, name

__all__ = ["Asked", "Difference", "Words", "amount", "built_in", "load", "name", "renders", "words_for"]
