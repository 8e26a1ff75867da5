"""Route conflicts: two objects whose rules match the same requests. The oldest wins; the others report the conflict.

A rule of a newer object is still published, with a lower priority. If it were skipped, its requests could fall through
to a wider rule without its protection while the older object is not in effect; it also takes over without a gap. Age
does not depend on the order of events, nor on whether an object can be translated.

Routes of the Gateway API have an order among themselves (`translation.gateway.routes.precedence`). They conflict with
Ingresses and ApisixRoutes only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.indexes import MATCHER_INDEX
from apisix_ingress.model.kinds.table import kinds_with
from apisix_ingress.model.network.route_keys import MOST_MATCHERS, Matcher, count_matchers, matchers_of, rules_of
from apisix_ingress.model.objects import Age, CustomObject, why_first
from apisix_ingress.state.store import TOP
from apisix_ingress.state.view import View, oldest
from translation.core.builder import Builder
from translation.core.scope import in_scope, is_ours
from translation.gateway.entry.owned import has_parent_of_ours
from translation.gateway.extensions.standings import HTTP_ROUTE_POLICY, HTTP_ROUTE_POLICY_TARGETS, policies_of

_KINDS = kinds_with(MATCHER_INDEX)


class RouteConflicts:
    """The older objects that match the same requests as the rules of one object.

    Args:
        draft: The translation of the object; problems are reported there.
        obj: The ApisixRoute, Ingress or route of the Gateway API.
        ordered: Kinds that have an order of their own with the object.
    """

    def __init__(self, draft: Builder, obj: CustomObject, ordered: Container[str] = ()) -> None:
        self._draft = draft
        self._ordered = ordered
        self._age = obj.meta.age
        self._matchers: dict[str, list[Matcher]] = defaultdict(list)
        rules = () if _has_policies(obj, draft.view) else tuple(rules_of(obj))
        if (count := count_matchers(rules)) <= MOST_MATCHERS:
            for matcher in matchers_of(rules):
                self._matchers[matcher.field].append(matcher)
        else:
            message = f"has {count} combinations of host and path; the limit is {MOST_MATCHERS}; split the object"
            draft.error("TooManyPaths", "spec", message)

    def ahead(self, field: str) -> int:
        """Return how many older objects match requests of a rule, up to a maximum; report which one wins.

        Without a conflict it is 0, however many older objects of ordered kinds there are.
        """
        lost: list[tuple[Age, Matcher]] = []
        older: set[Age] = set()
        for matcher in self._matchers[field]:
            if self._draft.owners.refusal(self._draft.namespace, matcher.host):
                continue
            found = self._older(matcher)
            if rivals := [age for age in found if age[3] not in self._ordered]:
                lost.append((min(rivals), matcher))
                older |= found
        if lost:
            self._report(field, *min(lost), len(lost) - 1)
        return min(len(older), TOP)

    def _older(self, matcher: Matcher) -> set[Age]:
        """Return the ages of the first objects of each kind that are older, in scope, and may use the host."""
        older: set[Age] = set()
        for kind in _KINDS:
            if found := oldest(self._draft.view, CustomObject, IndexKey(kind, MATCHER_INDEX, matcher.value)):
                older.update(self._effective(matcher, found))
        return older

    def _effective(self, matcher: Matcher, found: Iterable[CustomObject]) -> Iterator[Age]:
        """Yield the ages of the objects that are older, in scope, and may use the host, up to a maximum number."""
        count = 0
        for item in found:
            if item.meta.age >= self._age:
                return
            may_use = not self._draft.owners.refusal(item.meta.namespace, matcher.host)
            if may_use and self._is_rival(item):
                yield item.meta.age
                count += 1
            if count == TOP:
                return

    def _is_rival(self, item: CustomObject) -> bool:
        """Return whether an object is served, without policies that distinguish its requests."""
        view, options = self._draft.view, self._draft.options
        if item.meta.kind not in GATEWAY_KINDS:
            return is_ours(item, view, options) and not _has_policies(item, view)
        served = in_scope(item.meta.namespace, view, options) and has_parent_of_ours(item, view, options)
        return served and not _has_policies(item, view)

    def _report(self, field: str, winner: Age, matcher: Matcher, others: int) -> None:
        _, namespace, name, kind = winner
        known = namespace == self._draft.namespace
        whose = str(ObjectKey(kind, namespace, name)) if known else f"{_article(kind)} {kind} in namespace {namespace}"
        more = f" and {others} more" if others else ""
        message = (
            f"host/path conflict: requests for {matcher.host or 'every host'} and {matcher.path or '/'}{more} go"
            f" to {whose}, which {why_first(winner, self._age)}; remove one of them, or change its host, path or"
            " method"
        )
        self._draft.degrade("Conflicted", field, message)


def _has_policies(item: CustomObject, view: View) -> bool:
    """Return whether policies add conditions or a priority to an object, so that other objects match other requests."""
    return item.meta.kind in HTTP_ROUTE_POLICY_TARGETS and bool(policies_of(HTTP_ROUTE_POLICY, item.meta.key, view))


def _article(kind: str) -> str:
    return "a" if kind.startswith("G") else "an"
