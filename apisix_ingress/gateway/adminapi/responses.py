"""Interprets responses of the Admin API: lists become observed records, errors become exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

import httpx
import orjson

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.error_text import message_of, scrub
from apisix_ingress.gateway.adminapi.list_parser import NoList, items_of
from apisix_ingress.gateway.backend import DependencyPending, ObservedRecord
from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.names import is_owned
from apisix_ingress.model.record_owner import secrets_of
from apisix_ingress.model.records import comparable, hosts_of, references, taken

STREAM_DISABLED = "stream mode is disabled"
_UNSUPPORTED = "Unsupported resource type"
_NO_ETCD = "has no healthy etcd endpoint available"
_IN_USE = "is still using it now"
_GONE = "not found"
# Fields that a response to a successful write does not have.
_OF_NO_WRITE = frozenset({"error_msg", "error", "message", "list"})
_HELD_BY: tuple[tuple[RecordKind, TextPattern], ...] = (
    ("global_rules", TextPattern(r"already exists in global rule with id '?([^'\s]+)")),
    ("consumers", TextPattern(r"duplicate [a-z_]{1,64} of plugin .+ found with consumer: (\S+)")),
)
_DUPLICATE = TextPattern(r"duplicate [a-z_]{1,64} of plugin [a-z0-9-]{1,64} found with consumer: [\w.-]{1,128}")
_NOT_FOUND = TextPattern(
    r"failed to fetch (upstream|plugin config|consumer group|ssl) info by [a-z ]+ id \[(.+?)\], response code: 404"
)
_NAMED: dict[str, RecordKind] = {
    "upstream": "upstreams",
    "plugin config": "plugin_configs",
    "consumer group": "consumer_groups",
    "ssl": "ssls",
}
_TRANSIENT = frozenset({408, 425, 429})
LONGEST_WAIT = 300.0
"""The maximum `Retry-After` in seconds; longer ones are cut to it."""
_DIGITS = 9
# With these statuses the gateway has certainly not carried out the request.
_UNTOUCHED = frozenset({425, 429})


class AdminResponse(NamedTuple):
    """A complete response.

    Attributes:
        is_cut: The body was longer than its limit, and `content` is its beginning.
        is_resent: The request had to be repeated.
    """

    status_code: int
    headers: httpx.Headers
    content: bytes
    is_cut: bool = False
    is_resent: bool = False


def is_done(response: AdminResponse) -> bool:
    """Return whether the Admin API confirms that it carried out a write: an object that does not describe an error."""
    if not 200 <= response.status_code < 300:
        return False
    document = _object_in(response.content)
    return document is not None and _OF_NO_WRITE.isdisjoint(document)


def is_gone(response: AdminResponse) -> bool:
    """Return whether the Admin API reports that a record does not exist; a 404 of another server is ignored."""
    if response.status_code != HTTPStatus.NOT_FOUND:
        return False
    return _GONE in str((_object_in(response.content) or {}).get("message")).lower()


def is_strange(response: AdminResponse) -> bool:
    """Return whether a response to a write is not from an Admin API: no record, or the 404 of another server."""
    if response.status_code == HTTPStatus.NOT_FOUND:
        return not is_gone(response) and not is_disabled(response)
    return response.status_code < 300


def error_of(
    response: AdminResponse, what: str, fields: Fields, body: FrozenJson | None = None, *secrets: str
) -> GatewayError:
    """Return the error for an error response.

    Args:
        response: The response.
        what: The request, e.g. `PUT routes/1a2b`.
        fields: The names of the settings, for remedies.
        body: What was sent; its sensitive values are masked.
        secrets: Other texts to mask.
    """
    status = response.status_code
    plain = message_of(response.content, status)
    text = scrub(plain, body, *secrets)
    if status in (401, 403):
        return _unauthorized(status, text, fields)
    if status >= 500 or status in _TRANSIENT:
        return GatewayUnavailable(
            f"{what}: HTTP {status}: {text}",
            status=status,
            sent=status not in _UNTOUCHED,
            retry_after=_seconds(response.headers.get("Retry-After")),
        )
    if status == 400 and _NO_ETCD in text:
        return GatewayUnavailable(f"{what}: {text}", status=status, sent=False)
    return rejection(status, plain, text, what)


def rejection(status: int, plain: str, text: str, what: str) -> GatewayError:
    """Return the error for a write that is rejected: because of its body, or of another record.

    Args:
        status: The status of the response.
        plain: The gateway's text.
        text: The text without secrets.
        what: The request.
    """
    if status == 400 and _IN_USE in text:
        return DependencyPending(f"{what}: {text}")
    if status == 400 and (holder := _holder(plain)):
        # The text of this error is known and not masked: a credential equal to one of its words would hide the name.
        plainly = _DUPLICATE.search(plain)
        return DependencyPending(f"{what}: {plainly[0] if plainly else text}", holder=holder)
    if status == 400 and (named := _NOT_FOUND.search(text)):
        return DependencyPending(f"{what}: {text}", missing=RecordKey(_NAMED[named[1]], named[2]))
    return GatewayRejected(status, text)


def strange(
    response: AdminResponse, what: str, fields: Fields, body: FrozenJson | None = None, *secrets: str
) -> GatewayUnavailable:
    """Return the error for a response to a write that is not from an Admin API; the write may have been carried out."""
    status = response.status_code
    text = scrub(message_of(response.content, status), body, *secrets)
    repeated = f" ({text})" if text != f"HTTP {status}" else ""
    message = f"{what}: HTTP {status}, but the response is not from an Admin API{repeated}: check {fields.url}"
    return GatewayUnavailable(message, status=status)


def _holder(text: str) -> RecordKey | None:
    """Return the record that has an exclusive key of the rejected one, if that is the reason."""
    found = ((kind, pattern.search(text)) for kind, pattern in _HELD_BY)
    return next((RecordKey(kind, match[1]) for kind, match in found if match), None)


def refused_again(response: AdminResponse, what: str, fields: Fields) -> GatewayUnavailable | GatewayUnauthorized:
    """Return the error for a write that was cut off, repeated and rejected: the first copy may have been carried out.

    So the error concerns the cluster, not the body; the next attempt shows whether the body is rejected.
    """
    status = response.status_code
    if status in (401, 403):
        return _unauthorized(status, "when a write was repeated", fields, sent=True)
    message = f"{what}: HTTP {status} when it was repeated after no response"
    return GatewayUnavailable(message, status=status, retry_after=_seconds(response.headers.get("Retry-After")))


def _unauthorized(status: int, text: str, fields: Fields, *, sent: bool = False) -> GatewayUnauthorized:
    if status == HTTPStatus.FORBIDDEN:
        remedy = f"check allow_admin in the gateway's config.yaml, and {fields.key}"
        return GatewayUnauthorized(f"the gateway rejects this client ({text}): {remedy}", status=status, sent=sent)
    remedy = f"set {fields.key} to the gateway's key of role admin"
    return GatewayUnauthorized(f"the gateway rejects the admin key ({text}): {remedy}", status=status, sent=sent)


def misplaced(response: AdminResponse, url: str, fields: Fields) -> GatewayRejected | None:
    """Return the error for a list with status 404: the server at the URL is not an Admin API."""
    if response.status_code != HTTPStatus.NOT_FOUND:
        return None
    example = "http://gateway:9180/apisix/admin"
    return GatewayRejected(404, f"no Admin API at {url}: {fields.url} must end with its path, for example {example}")


def is_disabled(response: AdminResponse) -> bool:
    """Return whether the gateway does not serve the requested kind."""
    text = message_of(response.content, response.status_code)
    return (response.status_code == 404 and _UNSUPPORTED in text) or (
        response.status_code == 400 and STREAM_DISABLED in text
    )


def rejections_in(response: AdminResponse) -> list[tuple[str, int, str]] | None:
    """Return what is wrong with a document of records: kind, index in its list, error; None for any other response."""
    errors = (_object_in(response.content) or {}).get("errors")
    if response.status_code != HTTPStatus.BAD_REQUEST or not isinstance(errors, list):
        return None
    named = [error for error in errors if isinstance(error, dict) and isinstance(error.get("index"), int)]
    return [(str(each.get("resource_type")), each["index"], str(each.get("error"))) for each in named]


def records_of(
    kind: RecordKind, content: bytes, fields: Fields
) -> Iterator[tuple[RecordKey, JsonObject, int, int] | None]:
    """Yield the records of a list with their sizes in bytes and their revisions; see `bodies_of`."""
    for found in _listed(kind, content, fields):
        yield (RecordKey(kind, found[0]), *found[1:]) if found else None


def record_of(kind: RecordKind, content: bytes, controller: str) -> ObservedRecord | None:
    """Return the record in a response to a GET of one record; None if there is none.

    Args:
        kind: Its kind.
        content: The response.
        controller: The controller whose records have `ours` set.
    """
    document = _object_in(content) or {}
    item = node if isinstance(node := document.get("node"), dict) else document
    body = item.get("value")
    if not isinstance(body, dict):
        return None
    return replace(found_of(kind, body, _revision_of(item)), ours=is_owned(body.get("labels"), controller))


def bodies_of(kind: str, content: bytes, fields: Fields) -> Iterator[tuple[str, JsonObject] | None]:
    """Yield the records of a list by id, and None whenever other tasks should get a turn.

    Items without a body or an id are skipped.

    Args:
        kind: The path of the list; it may be a kind that this program never writes.
        content: The response.
        fields: The names of the settings, for remedies.

    Raises:
        GatewayUnavailable: It is not a list; discard what was yielded before.
    """
    return (found and found[:2] for found in _listed(kind, content, fields))


def _listed(kind: str, content: bytes, fields: Fields) -> Iterator[tuple[str, JsonObject, int, int] | None]:
    try:
        for found in items_of(content):
            if found is None:
                yield None
                continue
            item, size = found
            body = item.get("value")
            if isinstance(body, dict) and (id_ := _id_of(kind, item, body)):
                yield id_, body, size, _revision_of(item)
    except NoList as error:
        detail = f" ({error})" if error.args else ""
        why = f"GET {kind}: the reply is not a list of records{detail}: check {fields.url}"
        raise GatewayUnavailable(why, sent=False) from None


def _revision_of(item: JsonObject) -> int:
    revision = item.get("modifiedIndex")
    return revision if isinstance(revision, int) else 0


def found_of(kind: RecordKind, body: FrozenJson, revision: int = 0) -> ObservedRecord:
    """Return a listed record in the form that is compared with desired records.

    A body that is nested too deeply to be compared differs from every desired record.
    """
    name = body.get("name")
    try:
        digest = comparable(kind, body)
    except (TypeError, RecursionError):
        digest = b""
    refs, takes = frozenset(references(kind, body)), taken(kind, body.get("plugins"))
    name = name if isinstance(name, str) else ""
    hosts, secrets = hosts_of(kind, body), secrets_of(kind, body)
    created, updated = _time_in(body, "create_time"), _time_in(body, "update_time")
    return ObservedRecord(digest, refs, name, takes, revision, hosts, secrets=secrets, created=created, updated=updated)


_LATEST = 2**33
"""The year 2242: later times are not seconds since 1970."""


def _time_in(body: FrozenJson, name: str) -> int:
    """Return a time that the gateway adds to a record; 0 without a plausible one."""
    value = body.get(name)
    return value if isinstance(value, int) and 0 < value < _LATEST else 0


def _object_in(content: bytes) -> JsonObject | None:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _id_of(kind: str, item: JsonObject, body: JsonObject) -> str:
    """Return the id: the last part of the etcd key, or the id in the body."""
    _, found, id_ = str(item.get("key", "")).partition(f"/{kind}/")
    return id_ if found else str(body.get("username" if kind == "consumers" else "id") or "")


def _seconds(retry_after: Any) -> float | None:
    if not isinstance(retry_after, str) or not retry_after.isdecimal():
        return None
    return min(float(retry_after[:_DIGITS]), LONGEST_WAIT)
