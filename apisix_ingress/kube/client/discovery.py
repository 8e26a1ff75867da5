"""Which kinds the API server serves, according to its lists of API groups and of their resources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from apisix_ingress.errors import KubeNotFound, KubeUnavailable
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import discard

SHARED_SECONDS = 3.0
"""How long a list is used for other kinds. Many kinds of one group use the same lists every few seconds."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """A list that was requested, and when; the result is None if the API server responded with 404."""

    list: asyncio.Task[JsonObject | None]
    at: float

    def is_current(self, now: float) -> bool:
        if not self.list.done():
            return True
        return not self.list.cancelled() and self.list.exception() is None and now < self.at + SHARED_SECONDS


class Discovery:
    """Reads the lists, each at most once every few seconds, however many kinds are looked up.

    Args:
        get: Returns the JSON at a path; raises KubeNotFound for 404 and other KubeErrors.
        host: Host and port of the API server, for messages.
        clock: Measures the age of the lists.
    """

    def __init__(self, get: Callable[[str], Awaitable[JsonObject]], *, host: str, clock: Clock) -> None:
        self._get = get
        self._host = host
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    async def serves(self, resource: Resource, *, was_absent: bool = False) -> bool:
        """Return whether the API server serves a kind in its version; the result may be a few seconds old.

        A 404 alone is not proof, because a proxy may return it for every request. The list of all API groups must lack
        the version, too. That a kind is still absent needs no proof: for all these kinds, the list of all API groups is
        enough.

        Args:
            resource: The kind in one version.
            was_absent: Whether an earlier call found that the kind is not served.

        Raises:
            KubeUnavailable: Among others, a response is not such a list, or the two lists disagree.
        """
        if was_absent and resource.api_version not in await self._group_versions(resource):
            return False
        answer = await self._list(resource.base_path)
        if answer is None:
            if resource.api_version in await self._group_versions(resource):
                problem = "404, but the list of all API groups contains it"
                raise KubeUnavailable(f"{self._at(resource.base_path)}: {problem}")
            return False
        known = answer.get("resources")
        if not isinstance(known, list):
            raise KubeUnavailable(f"{self._at(resource.base_path)}: the response is not a list of resources")
        return any(isinstance(item, dict) and item.get("name") == resource.plural for item in known)

    async def close(self) -> None:
        """Cancel the requests in flight."""
        for answer in self._answers.values():
            await discard(answer.list)

    async def _group_versions(self, resource: Resource) -> set[str]:
        """Return the versions of the core group, or of all other API groups."""
        path = "/apis" if resource.group else "/api"
        answer = await self._list(path)
        if answer is None:
            problem = "404, which an API server never returns here: check the kubeconfig's server and any proxy"
            raise KubeUnavailable(f"{self._at(path)}: {problem}")
        try:
            if not resource.group:
                return set(map(str, answer["versions"]))
            return {str(each["groupVersion"]) for group in answer["groups"] for each in group["versions"]}
        except (KeyError, TypeError):
            raise KubeUnavailable(f"{self._at(path)}: the response is not a list of API groups") from None

    async def _list(self, path: str) -> JsonObject | None:
        """Return a list, requesting it unless it is current; concurrent callers share one request."""
        now = self._clock.monotonic()
        answer = self._answers.get(path)
        if answer is None or not answer.is_current(now):
            answer = self._answers[path] = _Answer(asyncio.create_task(self._request(path)), now)
            # A caller that is cancelled does not see an error; asyncio must not log it as lost.
            answer.list.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(answer.list)

    async def _request(self, path: str) -> JsonObject | None:
        try:
            return await self._get(path)
        except KubeNotFound:
            return None

    def _at(self, path: str) -> str:
        return f"API server {self._host}: GET {path}"
