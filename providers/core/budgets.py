"""What a translation takes of the bytes that its namespace may become, and what follows if that is too much."""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.namespace_budget import NamespaceBudget
from translation.core.result import NOTHING, Translation


def limited(budget: NamespaceBudget, key: ObjectKey, translation: Translation | None) -> tuple[Translation | None, int]:
    """Return a translation, as one that failed if its records don't fit, and the bytes of these records.

    Those of cluster-wide objects don't count. Neither do those of Services: nodes have a limit of their own, and a dead
    Pod leaves the gateways however much its namespace has.
    """
    if translation is None or translation.failed or not key.namespace or key.kind == "Service":
        return translation, 0
    size = sum(record.size for record in translation.records)
    if budget.fits(key, size):
        return translation, size
    message = (
        f"the objects of this namespace would become more than {budget.most // 2**20} MiB of records: delete some of"
        " them, or let them refer to smaller Secrets"
    )
    return replace(translation, problems=(*translation.problems, Problem("TooLarge", message, "spec"))), size


def account(
    budget: NamespaceBudget, key: ObjectKey, translation: Translation | None, size: int
) -> tuple[ObjectKey, ...]:
    """Count what an object publishes now; return the objects of its namespace that were too large and fit now.

    Args:
        budget: Of all namespaces.
        key: The object.
        translation: Its translation; `NOTHING` if its records are withdrawn, None if it is gone.
        size: Bytes of the records that it wants, whether or not they fit.
    """
    translation = translation or NOTHING
    if not translation.failed:
        budget.spend(key, size if translation.records else 0)
    elif size:
        budget.wait(key, size)
    else:
        budget.keep(key)
    return budget.admitted(key.namespace)
