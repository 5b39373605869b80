"""The filter of the API's reference."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from resumeapp import prose

register = template.Library()


@register.filter
def prose_line(text: str) -> SafeString:
    """A line of a document of ours, with its code, strong words and links."""
    return prose.line(text)
