"""What replies of the Admin API mean: lists become records found, refusals become the error that says who retries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import orjson

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.gateway.adminapi.admin_key import Fields
from apisix_ingress.gateway.adminapi.error_text import said, scrub
from apisix_ingress.gateway.adminapi.list_parser import NoList, items_of
from apisix_ingress.gateway.adminapi.transport import Reply
from apisix_ingress.gateway.backend import DependencyPending, ObservedRecord
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.names import is_owned
from apisix_ingress.model.records import comparable, hosts_of, references, taken

STREAM_DISABLED = "stream mode is disabled"
_UNSUPPORTED = "Unsupported resource type"
_NO_ETCD = "has no healthy etcd endpoint available"
_IN_USE = "is still using it now"
_GONE = "not found"
# What a reply has that is about something else than the record that was written.
_OF_NO_WRITE = frozenset({"error_msg", "error", "message", "list"})
_HELD_BY: tuple[tuple[RecordKind, re.Pattern[str]], ...] = (
    ("global_rules", re.compile(r"already exists in global rule with id '?([^'\s]+)")),
    ("consumers", re.compile(r"duplicate [a-z_]{1,64} of plugin .+ found with consumer: (\S+)")),
)
_DUPLICATE = re.compile(r"duplicate [a-z_]{1,64} of plugin [a-z0-9-]{1,64} found with consumer: [\w.-]{1,128}")
_NOT_FOUND = re.compile(
    r"failed to fetch (upstream|plugin config|ssl) info by [a-z ]+ id \[(.+?)\], response code: 404"
)
_NAMED: dict[str, RecordKind] = {"upstream": "upstreams", "plugin config": "plugin_configs", "ssl": "ssls"}
_TRANSIENT = frozenset({408, 425, 429})
LONGEST_WAIT = 300.0
"""Seconds that a gateway may ask to be left alone (`Retry-After`); it is asked again after these."""
_DIGITS = 9
# A refusal by the gateway itself that certainly changed nothing there.
_UNTOUCHED = frozenset({425, 429})


def is_done(reply: Reply) -> bool:
    """Say whether a reply is the Admin API's word that it carried out a write: an object, and none about an error."""
    if not 200 <= reply.status_code < 300:
        return False
    document = _object_in(reply.content)
    return document is not None and _OF_NO_WRITE.isdisjoint(document)


def is_gone(reply: Reply) -> bool:
    """Say whether a reply is the Admin API's word that a record is not there: not anybody's 404."""
    if reply.status_code != HTTPStatus.NOT_FOUND:
        return False
    return _GONE in str((_object_in(reply.content) or {}).get("message")).lower()


def is_strange(reply: Reply) -> bool:
    """Say whether a reply to a write is none of an Admin API: one that seems fine, or anybody's 404."""
    if reply.status_code == HTTPStatus.NOT_FOUND:
        return not is_gone(reply) and not is_disabled(reply)
    return reply.status_code < 300


def error_of(reply: Reply, what: str, fields: Fields, body: FrozenJson | None = None, *secrets: str) -> GatewayError:
    """Return the error that a refusal stands for.

    Args:
        reply: One that says no.
        what: The request, e.g. `PUT routes/1a2b`.
        fields: Where people put the admin key right.
        body: What was sent; no sensitive value of it is repeated.
        secrets: Other texts not to repeat.
    """
    status = reply.status_code
    plain = said(reply.content, status)
    words = scrub(plain, body, *secrets)
    if status in (401, 403):
        return _unauthorized(status, words, fields)
    if status >= 500 or status in _TRANSIENT:
        return GatewayUnavailable(
            f"{what}: HTTP {status}: {words}",
            status=status,
            sent=status not in _UNTOUCHED,
            retry_after=_seconds(reply.headers.get("Retry-After")),
        )
    if status == 400 and _NO_ETCD in words:
        return GatewayUnavailable(f"{what}: {words}", status=status, sent=False)
    if status == 400 and _IN_USE in words:
        return DependencyPending(f"{what}: {words}")
    if status == 400 and (holder := _holder(plain)):
        # Whose name stands there is known by its place: a credential that is one of these words must not hide it.
        plainly = _DUPLICATE.search(plain)
        return DependencyPending(f"{what}: {plainly[0] if plainly else words}", holder=holder)
    if status == 400 and (named := _NOT_FOUND.search(words)):
        return DependencyPending(f"{what}: {words}", missing=RecordKey(_NAMED[named.group(1)], named.group(2)))
    return GatewayRejected(status, words)


def strange(
    reply: Reply, what: str, fields: Fields, body: FrozenJson | None = None, *secrets: str
) -> GatewayUnavailable:
    """Return the error of a reply to a write that is none of an Admin API: nobody knows what became of the write."""
    status = reply.status_code
    words = scrub(said(reply.content, status), body, *secrets)
    repeated = f" ({words})" if words != f"HTTP {status}" else ""
    message = f"{what}: HTTP {status}, but not as an Admin API answers{repeated}: check {fields.url}"
    return GatewayUnavailable(message, status=status)


def _holder(words: str) -> RecordKey | None:
    """Return the record that has what another one is to have, if that is why it was refused."""
    found = ((kind, pattern.search(words)) for kind, pattern in _HELD_BY)
    return next((RecordKey(kind, match.group(1)) for kind, match in found if match), None)


def refused_again(reply: Reply, what: str, fields: Fields) -> GatewayUnavailable | GatewayUnauthorized:
    """Return the error of a write that was cut off, sent again and refused: the first time it may have come through.

    So it is about the cluster, not about the body; the next try shows what there is to say of that.
    """
    status = reply.status_code
    if status in (401, 403):
        return _unauthorized(status, "when a write was sent again", fields, sent=True)
    message = f"{what}: HTTP {status} when it was sent again after no answer"
    return GatewayUnavailable(message, status=status, retry_after=_seconds(reply.headers.get("Retry-After")))


def _unauthorized(status: int, words: str, fields: Fields, *, sent: bool = False) -> GatewayUnauthorized:
    if status == HTTPStatus.FORBIDDEN:
        remedy = f"see allow_admin in the gateway's config.yaml, and {fields.key}"
        return GatewayUnauthorized(f"the gateway refuses this client ({words}): {remedy}", status=status, sent=sent)
    remedy = f"set {fields.key} to the gateway's key of role admin"
    return GatewayUnauthorized(f"the gateway refuses the admin key ({words}): {remedy}", status=status, sent=sent)


def misplaced(reply: Reply, url: str, fields: Fields) -> GatewayRejected | None:
    """Return the error of a list that is not there: whatever answers at the URL, it is no Admin API."""
    if reply.status_code != HTTPStatus.NOT_FOUND:
        return None
    example = "http://gateway:9180/apisix/admin"
    return GatewayRejected(404, f"there is no Admin API at {url}: {fields.url} ends with its path, as {example}")


def is_disabled(reply: Reply) -> bool:
    """Say whether the gateway does not serve the kind that was asked for."""
    words = said(reply.content, reply.status_code)
    return (reply.status_code == 404 and _UNSUPPORTED in words) or (
        reply.status_code == 400 and STREAM_DISABLED in words
    )


def records_of(
    kind: RecordKind, content: bytes, fields: Fields
) -> Iterator[tuple[RecordKey, JsonObject, int, int] | None]:
    """Yield the records of a list with their sizes in bytes and their revisions; see `bodies_of`."""
    for found in _listed(kind, content, fields):
        yield (RecordKey(kind, found[0]), *found[1:]) if found else None


def record_of(kind: RecordKind, content: bytes, controller: str) -> ObservedRecord | None:
    """Return the record that a reply to a GET of one record holds; None: it holds none.

    Args:
        kind: Its kind.
        content: The reply.
        controller: Whose records are ours.
    """
    document = _object_in(content) or {}
    item = node if isinstance(node := document.get("node"), dict) else document
    body = item.get("value")
    if not isinstance(body, dict):
        return None
    return replace(found_of(kind, body, _revision_of(item)), ours=is_owned(body.get("labels"), controller))


def bodies_of(kind: str, content: bytes, fields: Fields) -> Iterator[tuple[str, JsonObject] | None]:
    """Yield the records of a list by id; None where it is time for other tasks to have their turn.

    What has no body or no id is passed over.

    Args:
        kind: The path of the list; kinds that this program never writes have bodies as well.
        content: The reply.
        fields: Where people put the address right.

    Raises:
        GatewayUnavailable: It is no list; what was yielded until then counts for nothing.
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
        why = f"GET {kind}: the reply is no list of records{detail}: check {fields.url}"
        raise GatewayUnavailable(why, sent=False) from None


def _revision_of(item: JsonObject) -> int:
    revision = item.get("modifiedIndex")
    return revision if isinstance(revision, int) else 0


def found_of(kind: RecordKind, body: FrozenJson, revision: int = 0) -> ObservedRecord:
    """Return a listed record in the form in which it is compared with what is wanted.

    A body nested too deeply to have one is taken as equal to none.
    """
    name = body.get("name")
    try:
        digest = comparable(kind, body)
    except (TypeError, RecursionError):
        digest = b""
    refs, takes = frozenset(references(kind, body)), taken(kind, body.get("plugins"))
    return ObservedRecord(digest, refs, name if isinstance(name, str) else "", takes, revision, hosts_of(kind, body))


def _object_in(content: bytes) -> JsonObject | None:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _id_of(kind: str, item: JsonObject, body: JsonObject) -> str:
    """Return the id: the rest of the etcd key, or what the body calls it."""
    _, found, id_ = str(item.get("key", "")).partition(f"/{kind}/")
    return id_ if found else str(body.get("username" if kind == "consumers" else "id") or "")


def _seconds(retry_after: Any) -> float | None:
    if not isinstance(retry_after, str) or not retry_after.isdecimal():
        return None
    return min(float(retry_after[:_DIGITS]), LONGEST_WAIT)
