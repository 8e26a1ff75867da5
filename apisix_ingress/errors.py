"""The error tree. The class says who deals with it; nothing here does I/O or knows an object's or record's field.

::

    IngressError
    ├── ConfigError              nobody retries: the start fails with one line that says what to fix
    ├── UsageError               nobody retries: a command was given something it can't read
    ├── KubeError                an answer of the API server that no other class describes
    │   ├── KubeUnavailable      reflector, elector, status writer: after a jittered backoff
    │   │   ├── KubeUnreachable  the same; the outage was told already, once for all of them
    │   │   └── KubeTimeout      the same; a command gives up: whatever else it asks would wait as long
    │   ├── KubeConflict         the caller, once it has read the object again
    │   ├── KubeGone             the reflector, with a full list
    │   ├── KubeForbidden        the reflector, slowly: the missing permission is reported, other kinds go on
    │   └── KubeNotFound         nobody: absence is an answer (for a kind: the reflector waits for its CRD)
    ├── GatewayError             an answer of a gateway that no other class describes
    │   ├── GatewayUnavailable   tenacity within one attempt, then the backoff of the record
    │   ├── GatewayRejected      nobody, until the body changes: the record is quarantined
    │   ├── GatewayRedirected    as unavailable, but it does not pass before the address is changed
    │   └── GatewayUnauthorized  the whole cluster pauses and probes
    └── LeadershipLost           nobody: the term ends and its writers are cancelled

A user's mistake in an object is no exception but a ``Problem``. A message names the object, the field and the
remedy, and never holds a key, a token or a request header.
"""


class IngressError(Exception):
    """Root of every error that this program raises on purpose."""


class ConfigError(IngressError):
    """The configuration can't work. The text is for the person who wrote it; one line per thing to fix."""


class UsageError(IngressError):
    """A command, or a form of the status page, was given something malformed. The text says what to write instead."""


class KubeError(IngressError):
    """The API server refused or failed.

    Attributes:
        status: HTTP status of the answer, None when there was no answer.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class KubeUnavailable(KubeError):
    """No usable answer: connect error, timeout, 5xx, 429.

    Attributes:
        retry_after: seconds the API server asked to wait (``Retry-After``), None when it did not say.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after


class KubeUnreachable(KubeUnavailable):
    """No connection to the API server, or it was cut. The client tells of an outage: its callers need not."""


class KubeTimeout(KubeUnavailable):
    """The API server took the request and did not answer it in time."""


class KubeConflict(KubeError):
    """409: the object changed since it was read."""


class KubeGone(KubeError):
    """410: the resource version or continue token is too old; only a full list helps."""


class KubeForbidden(KubeError):
    """401 or 403: the credentials are not accepted, or lack a permission."""


class KubeNotFound(KubeError):
    """404: no such object, or the API server does not know the kind (its CRD is not installed)."""


class GatewayError(IngressError):
    """A gateway refused or failed.

    Attributes:
        status: HTTP status of the answer, None when there was no answer.
        sent: whether the request may have been carried out although the answer is missing or an error. When
            in doubt it is True: the caller must treat the record as *unknown*, never as *not written*.
        cause: what the message says about the cluster, without the request that found it; empty: the same.
    """

    cause = ""

    def __init__(self, message: str, *, status: int | None = None, sent: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent


class GatewayUnavailable(GatewayError):
    """Transient: connect error, timeout, cut reply, 5xx, 429.

    Attributes:
        retry_after: seconds the gateway asked to wait, None when it did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        sent: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, sent=sent)
        self.retry_after = retry_after


class GatewayRejected(GatewayError):
    """4xx: the gateway will not take this body. Terminal until the body changes.

    Attributes:
        status: HTTP status of the answer.
        message: the gateway's own words, as the owner of the record will read them.
    """

    status: int

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}", status=status, sent=False)
        self.message = message


class GatewayRedirected(GatewayError):
    """3xx: whatever answers at the address of the Admin API sends requests elsewhere; none was followed."""


class GatewayUnauthorized(GatewayError):
    """401 or 403: the admin key or client certificate of the whole cluster is not accepted."""

    def __init__(self, message: str, *, status: int | None = None, sent: bool = False) -> None:
        super().__init__(message, status=status, sent=sent)


class LeadershipLost(IngressError):
    """The lease is lost, or may have run out by the monotonic clock: nothing more may be written."""
