"""Which fault is applied to which request: a rule file that may change at any time, and a log of faults.

Shared by the proxies in front of the API server and the Admin API, which implement the actions; this module reads,
matches and counts rules. A rule file contains a JSON list; the first rule that matches and is not used up is applied::

    [{"match": {"verb": "watch", "resource": "apisix.*"}, "action": "stall"},
     {"match": {"method": "PUT"}, "action": "status", "status": 429, "times": 3, "share": 0.5}]

`match` names attributes of a request, each with a regular expression for the whole of it. `times` is how often the rule
may be applied (default: no limit); `share` the probability that a matching request meets it. The first `skip` matching
requests pass, and after them all but each `every`th. All other keys belong to the action.
"""

import json
import random
import re
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.cluster.process import whole_lines

KNOWN = frozenset(("match", "action", "times", "share", "skip", "every"))


class RuleError(Exception):
    """An invalid rule file; the message contains the reason."""


@dataclass(slots=True)
class Rule:
    """One rule; after the file has changed, `text` shows whether it is still the same rule."""

    text: str
    action: str
    match: Mapping[str, re.Pattern[str]]
    times: int | None = None
    share: float = 1.0
    skip: int = 0
    every: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    matched: int = 0

    @classmethod
    def parse(cls, raw: Any, actions: Collection[str]) -> "Rule":
        """Read one rule; raises RuleError."""
        try:
            action, match = raw["action"], {name: re.compile(each) for name, each in raw.get("match", {}).items()}
            times, share = raw.get("times"), float(raw.get("share", 1.0))
            skip, every = int(raw.get("skip", 0)), max(1, int(raw.get("every", 1)))
        except (TypeError, KeyError, ValueError, AttributeError, re.error) as error:
            raise RuleError(f"no rule ({error!r}): {raw!r}") from None
        if action not in actions:
            raise RuleError(f"action {action!r}: must be one of {', '.join(sorted(actions))}")
        options = {name: value for name, value in raw.items() if name not in KNOWN}
        return cls(json.dumps(raw, sort_keys=True), action, match, times, share, skip, every, options)

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Return whether it matches a request; a missing attribute is treated as empty."""
        return all(pattern.fullmatch(attributes.get(name, "")) for name, pattern in self.match.items())

    def is_due(self) -> bool:
        """Count a matching request, and return whether the rule applies to it."""
        self.matched += 1
        return self.matched > self.skip and (self.matched - self.skip) % self.every == 0


class RuleFile:
    """The current rules. Safe to use from several threads.

    Args:
        path: The file; absent means no rules.
        actions: The actions of the proxy.
        seed: Seed of the random choice for `share`.
    """

    def __init__(self, path: Path, actions: Collection[str], *, seed: int = 0) -> None:
        self.path = path
        self.problem = ""
        """Why the file is invalid, or empty; the previous rules stay in effect."""
        self._actions = frozenset(actions)
        self._random = random.Random(seed)
        self._rules: list[Rule] = []
        self._stamp: tuple[int, int, int] | None = None
        self._lock = threading.Lock()

    def write(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Replace the file atomically and apply it at once; a rule that is removed and added again counts from 0.

        Raises:
            RuleError: A rule is invalid; the file is unchanged.
        """
        for rule in rules:
            Rule.parse(rule, self._actions)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(list(rules), indent=1))
        with self._lock:
            fresh.replace(self.path)
            self._refresh()

    def take(self, attributes: Mapping[str, str], among: Collection[str] | None = None) -> Rule | None:
        """Return the rule to apply to a request, and count it.

        Args:
            attributes: Of the request.
            among: Actions that can be applied now; all of them if None.
        """
        with self._lock:
            self._refresh()
            for rule in self._rules:
                if (among is None or rule.action in among) and rule.times != 0 and rule.matches(attributes):
                    if not rule.is_due() or (rule.share < 1.0 and self._random.random() >= rule.share):
                        continue
                    if rule.times is not None:
                        rule.times -= 1
                    return rule
        return None

    def holds(self, rule: Rule) -> bool:
        """Return whether an applied rule is still in the file."""
        with self._lock:
            self._refresh()
            return any(each.text == rule.text for each in self._rules)

    def _refresh(self) -> None:
        stamp = _stamp(self.path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            raw = json.loads(self.path.read_text()) if stamp is not None else []
            rules = [Rule.parse(each, self._actions) for each in raw]
        except (OSError, ValueError, TypeError, RuleError) as error:
            self.problem = f"{self.path}: {error}"
            return
        self.problem = ""
        known = {rule.text: rule for rule in self._rules}
        # A rule that stays in the file keeps its counts.
        self._rules = [known.get(rule.text, rule) for rule in rules]


class FaultLog:
    """One JSON object per line: time (monotonic and wall clock), sender, request. Safe to use from several threads."""

    def __init__(self, path: Path, who: str) -> None:
        self.path = path
        self._who = who
        self._lock = threading.Lock()

    def note(self, event: str, **fields: Any) -> None:
        """Add a line."""
        line = {"monotonic": time.monotonic(), "time": time.time(), "who": self._who, "event": event, **fields}
        with self._lock, self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self, event: str = "", **fields: Any) -> list[dict[str, Any]]:
        """Return the log so far, optionally only one event or entries with these fields."""
        if not self.path.exists():
            return []
        found = map(json.loads, whole_lines(self.path))
        wanted = fields | ({"event": event} if event else {})
        return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
