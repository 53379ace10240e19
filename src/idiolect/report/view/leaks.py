"""The findings of the leakage audits, each with whether a reader must know it before believing a number."""

import re
from collections.abc import Sequence
from typing import Any

from idiolect.report.view.parts import Part

_SEVERE = re.compile(
    r"^[1-9][\d,]* of [\d,]+ \w+ samples .* have an exact copy|FITTED ON TEST SAMPLES|^Known leak: |^Column '"
)


_AUDIT = re.compile(
    r"^(No leak found|Not audited|The samples of different sites|Known leak: |Column '.*' alone tells)"
    r"|^Normalisation '"
    r"|^[\d,]+ samples, [\d,]+ of them distinct|^[\d,]+ of [\d,]+ \w+ samples .* have an exact copy"
)


def is_finding(line: str) -> bool:
    """Whether a sentence about data is of the audit; the others are notes."""
    return _AUDIT.search(line) is not None


def leaks_of(parts: Sequence[Part]) -> list[dict[str, Any]] | None:
    """The findings of all parts, none twice; None if nothing is known of any audit."""
    if all(part.audit is None for part in parts):
        return None
    several = len(parts) > 1
    found = {
        f"{part.title}: {line}" if several else line: is_severe(line) for part in parts for line in part.audit or ()
    }
    return [{"text": text, "severe": severe} for text, severe in found.items()]


def findings_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The findings of one audit in the same form."""
    return [{"text": line, "severe": is_severe(line)} for line in lines]


def is_severe(line: str) -> bool:
    """Whether a finding is of a leak, and not that there is none."""
    return _SEVERE.search(line) is not None
