"""Whether a condition tells of an outage: only gateways that do not answer keep its object from being in effect.

A condition is text: it is read here by the words of those who write it, which are `providers.conditions` for its parts
and `gateway.admin` for what became of a request. What a gateway refused is in the gateway's own words and is no outage.
"""

from __future__ import annotations

import re

from apisix_ingress.model.keys import RECORD_KINDS

_RECORD = rf"(?:{'|'.join(sorted(RECORD_KINDS))})/\S+"
_REQUEST = r"(?:GET|PUT|DELETE) \S+"
_UNANSWERED = r"no (?:answer|whole list) within |[A-Z]\w+(?:Error|Timeout): |HTTP \d{3}: |.*no healthy etcd endpoint"
_FAILURE = re.compile(rf"(?:cluster \S+|{_RECORD}|{_REQUEST}): ")
_OUTAGE = re.compile(rf"(?:cluster \S+: )?(?:(?:waits for )?{_RECORD}: )*{_REQUEST}: (?:{_UNANSWERED})")
_CUT = re.compile(r"\.\.\. \([0-9a-f]{16}\)$")


def is_outage(message: str) -> bool:
    """Say whether every failure that a message tells of is a gateway that does not answer, or not now.

    A part that is no failure belongs to the one before it, whose words may hold a semicolon, or says who else accepted
    the object. Of a message that was shortened the part with the cut is not looked at, unless it is the only one.
    """
    first, *parts = message.split("; ")
    if parts and _CUT.search(parts[-1]):
        parts.pop()
    failures = [first, *(part for part in parts if _FAILURE.match(part))]
    return all(_OUTAGE.match(failure) for failure in failures)
