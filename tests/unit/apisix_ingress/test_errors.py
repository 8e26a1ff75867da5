"""The error tree is the one its module draws, and each class carries what its handler needs."""

import inspect

import pytest

from apisix_ingress import errors


def test_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    assert all(issubclass(cls, errors.IngressError) for cls in classes)
    drawing = (errors.__doc__ or "").splitlines()
    depths = {}
    for cls in classes:
        (line,) = [line for line in drawing if f" {cls.__name__} " in f"{line} "]
        depths[cls] = (line.index(cls.__name__) - 4) // 4
    assert depths == {cls: len(cls.__mro__) - len(errors.IngressError.__mro__) for cls in classes}


def test_unavailable_errors_say_how_long_to_wait() -> None:
    kube = errors.KubeUnavailable("429: too many requests", status=429, retry_after=3.0)
    gateway = errors.GatewayUnavailable("503: try later", status=503, sent=False, retry_after=2.0)
    assert (kube.status, kube.retry_after, str(kube)) == (429, 3.0, "429: too many requests")
    assert (gateway.status, gateway.sent, gateway.retry_after) == (503, False, 2.0)


def test_a_lost_reply_means_sent_by_default() -> None:
    assert errors.GatewayUnavailable("no reply within 5 s").sent
    assert errors.GatewayError("cut").sent
    assert errors.KubeUnavailable("refused").status is None


def test_rejection_keeps_the_gateways_error_and_was_not_applied() -> None:
    error = errors.GatewayRejected(400, 'property "uri" is required')
    assert (error.status, error.message, error.sent) == (400, 'property "uri" is required', False)
    assert str(error) == '400: property "uri" is required'


def test_refused_key_was_not_applied() -> None:
    error = errors.GatewayUnauthorized("the admin key of cluster a is refused", status=401)
    assert (error.status, error.sent) == (401, False)


@pytest.mark.parametrize("cls", [errors.KubeConflict, errors.KubeGone, errors.KubeForbidden, errors.KubeNotFound])
def test_every_response_of_the_api_server_keeps_its_status(cls: type[errors.KubeError]) -> None:
    assert cls("message", status=418).status == 418
