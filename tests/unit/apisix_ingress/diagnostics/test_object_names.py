"""How objects are named on the command line."""

import pytest

from apisix_ingress.diagnostics.object_names import parse_object
from apisix_ingress.errors import UsageError
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES


@pytest.mark.parametrize("word", ["ApisixRoute", "apisixroute", "apisixroutes", "ar", "AR"])
def test_a_kind_is_found_by_its_name_its_plural_and_its_short_name(word: str) -> None:
    assert parse_object(word, "shop/web", RESOURCES) == ObjectKey("ApisixRoute", "shop", "web")


def test_a_cluster_scoped_kind_has_only_a_name() -> None:
    assert parse_object("ApisixClusterConfig", "default", RESOURCES).namespace == ""
    with pytest.raises(UsageError, match="cluster-scoped"):
        parse_object("ApisixClusterConfig", "shop/default", RESOURCES)


@pytest.mark.parametrize("name", ["web", "/web", "shop/", "a/b/c", ""])
def test_a_name_without_a_namespace_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="as namespace/name"):
        parse_object("ing", name, RESOURCES)


def test_an_empty_word_is_not_a_kind() -> None:
    for kinds in (RESOURCES, ["Ingress"]):
        with pytest.raises(UsageError, match="unknown kind ''"):
            parse_object("", "shop/web", kinds)


@pytest.mark.parametrize("word", ["ApisixRout", "apisixrotue", "apisixroutse"])
def test_a_mistyped_kind_is_rejected_with_the_most_similar_one(word: str) -> None:
    with pytest.raises(UsageError, match=f"^unknown kind '{word}'; did you mean ApisixRoute?"):
        parse_object(word, "shop/web", RESOURCES)


def test_an_unknown_kind_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown kind 'Pod'; use one of Ingress, ApisixRoute"):
        parse_object("Pod", "shop/web", ["Ingress", "ApisixRoute"])
