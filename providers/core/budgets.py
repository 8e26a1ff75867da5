"""The limit on the bytes of records per namespace: fails translations that exceed it and counts the others."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.namespace_budget import NamespaceBudget
from translation.core.result import NOTHING, Translation


def limited(budget: NamespaceBudget, key: ObjectKey, translation: Translation | None) -> tuple[Translation | None, int]:
    """Return a translation and the bytes of its records; a translation whose records exceed the budget fails.

    Records of cluster-scoped objects and of Services are excluded: nodes have a separate limit, and a dead Pod must
    leave the gateways however large its namespace is.
    """
    if translation is None or translation.failed or not key.namespace or key.kind == "Service":
        return translation, 0
    size = sum(record.size for record in translation.records)
    if budget.fits(key, size):
        return translation, size
    message = (
        f"the objects of this namespace would exceed the limit of {budget.most // 2**20} MiB of records: delete some of"
        " them, or make them refer to smaller Secrets"
    )
    return translation._replace(problems=(*translation.problems, Problem("TooLarge", message, "spec"))), size


def account(
    budget: NamespaceBudget, key: ObjectKey, translation: Translation | None, size: int
) -> tuple[ObjectKey, ...]:
    """Count the published bytes of an object; return objects of its namespace that exceeded the budget and fit now.

    Args:
        budget: The budget of all namespaces.
        key: The object.
        translation: Its translation; `NOTHING` if its records are withdrawn, None if it is gone.
        size: Bytes of its desired records, whether or not they fit.
    """
    translation = translation or NOTHING
    if not translation.failed:
        budget.spend(key, size if translation.records else 0)
    elif size:
        budget.wait(key, size)
    else:
        budget.keep(key)
    return budget.admitted(key.namespace)
