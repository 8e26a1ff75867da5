"""`kubernetes.secret_selector`: which Secrets are read, and what objects say about others."""

from __future__ import annotations

from dataclasses import replace

from providers.core.registry import resources
from tests.unit.translation.objects import OPTIONS, world
from translation.core.context import Context
from translation.core.options import Options


def test_only_secrets_are_selected_by_their_labels() -> None:
    got = {each.kind: each.labels for each in resources(Options(secret_selector="gateway=apisix")) if each.labels}
    assert got == {"Secret": "gateway=apisix"}


def test_a_missing_secret_may_lack_the_labels() -> None:
    for cross_namespace in ("allow", "grant"):
        options = replace(OPTIONS, secret_selector="gateway=apisix", cross_namespace=cross_namespace)
        scope = Context("ApisixTls", "default", world().view(), options)
        scope.secret("own", "spec.secret.name")
        scope.secret("other", "spec.secret.name", namespace="elsewhere")
        assert all("lacks the labels of secret_selector (gateway=apisix)" in each.message for each in scope.problems)
        assert len(scope.problems) == 2
