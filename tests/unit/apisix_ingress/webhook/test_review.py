"""AdmissionReview: requests in both versions, and responses in the version of the request."""

import orjson
import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.webhook.review import MESSAGES, WARNING_LENGTH, WARNINGS, ReviewError, Verdict, parse_review, render

REQUEST: JsonObject = {
    "uid": "705ab4f5",
    "kind": {"group": "apisix.apache.org", "version": "v2", "kind": "ApisixRoute"},
    "resource": {"group": "apisix.apache.org", "version": "v2", "resource": "apisixroutes"},
    "name": "web",
    "namespace": "default",
    "operation": "UPDATE",
    "object": {"spec": {"http": []}},
    "oldObject": None,
}


def body(request: object = REQUEST, version: str = "v1", **fields: object) -> bytes:
    document = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": request, **fields}
    return orjson.dumps(document)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_response_has_the_version_of_the_review(version: str) -> None:
    review = parse_review(body(version=version))
    got = orjson.loads(render(review, Verdict()))
    want = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview"}
    assert got == {**want, "response": {"uid": "705ab4f5", "allowed": True}}


def test_a_review_contains_the_requested_attributes() -> None:
    got = parse_review(body())
    assert (got.operation, got.group, got.kind) == ("UPDATE", "apisix.apache.org", "ApisixRoute")
    assert (got.namespace, got.name, got.resource, got.subresource) == ("default", "web", "apisixroutes", "")
    assert (got.object, got.old_object) == ({"spec": {"http": []}}, {})


@pytest.mark.parametrize(
    ("content", "want"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[]", "not an AdmissionReview"),
        (b'"x"', "not an AdmissionReview"),
        (body(kind="Review"), "not an AdmissionReview"),
        (body(version="v2"), "apiVersion must be one of admission.k8s.io/v1, admission.k8s.io/v1beta1"),
        (body(request=None), "no request"),
        (body(request={"uid": 7}), "no request"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"kind": "AdmissionReview", "apiVersion": {}}', "apiVersion must be one of"),
        (b'{"kind": "AdmissionReview", "apiVersion": [[]]}', "apiVersion must be one of"),
    ],
)
def test_input_that_is_not_a_review_is_reported(content: bytes, want: str) -> None:
    with pytest.raises(ReviewError, match=want):
        parse_review(content)


def test_fields_of_a_wrong_type_count_as_absent() -> None:
    got = parse_review(body({"uid": "u", "kind": 7, "operation": [], "object": "x", "name": None}))
    assert (got.kind, got.operation, got.object, got.name) == ("", "", {}, "")


def test_a_review_with_excessive_nesting_is_still_read() -> None:
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    content = body().replace(b'{"spec":{"http":[]}}', deep)
    assert parse_review(content).uid == "705ab4f5"


def test_denial_has_a_line_for_each_reason_and_warnings_beside_it() -> None:
    review = parse_review(body())
    got = orjson.loads(render(review, Verdict(("one", "two", "one"), ("careful",))))["response"]
    status = {"status": "Failure", "reason": "Invalid", "code": 422, "message": "one\ntwo"}
    assert got == {"uid": "705ab4f5", "allowed": False, "status": status, "warnings": ["careful"]}


def test_warnings_fit_into_a_header_and_are_few() -> None:
    many = tuple(f"{number}\r\nSet-Cookie: x {'y' * 300}\ud800" for number in range(40))
    got = orjson.loads(render(parse_review(body()), Verdict(warnings=many)))["response"]["warnings"]
    assert len(got) == WARNINGS
    assert got[-1] == "and 25 more"
    assert all(len(text) <= WARNING_LENGTH and text.isprintable() for text in got)


def test_reasons_are_bounded() -> None:
    many = tuple(f"{number} {'y' * 5000}" for number in range(1000))
    got = orjson.loads(render(parse_review(body()), Verdict(many)))["response"]["status"]["message"].split("\n")
    assert len(got) == MESSAGES
    assert got[-1] == "and 969 more"
    assert max(map(len, got)) == 512
