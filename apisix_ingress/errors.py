"""The error tree. The class determines who handles it; nothing here does I/O or knows a field of an object or record.

::

    IngressError
    ├── ConfigError              not retried: the start fails with one line that says what to fix
    │   └── NoCredentials        not retried: commands that do not need an API server continue without it
    ├── UsageError               not retried: a command got an invalid argument
    ├── KubeError                a response of the API server that no other class describes
    │   ├── KubeUnavailable      reflector, elector, status writer: after a jittered backoff
    │   │   ├── KubeUnreachable  the same; the outage is logged already, once for all of them
    │   │   └── KubeTimeout      the same; a command gives up: further requests would wait as long
    │   ├── KubeConflict         the caller, once it has read the object again
    │   ├── KubeGone             the reflector, with a full list
    │   ├── KubeForbidden        the reflector, slowly: the missing permission is reported, other kinds continue
    │   └── KubeNotFound         not retried: absence is a result (for a kind: the reflector waits for its CRD)
    ├── GatewayError             a response of a gateway that no other class describes
    │   ├── GatewayUnavailable   tenacity within one attempt, then the backoff of the record
    │   ├── GatewayRejected      not retried until the body changes: the record is quarantined
    │   ├── GatewayRedirected    as unavailable, but permanent until the address is changed
    │   └── GatewayUnauthorized  the whole cluster pauses and probes
    └── LeadershipLost           not retried: the term ends and its writers are cancelled

A user's mistake in an object is a ``Problem``, not an exception. A message names the object, the field and the
remedy, and never contains a key, a token or a request header.
"""


class IngressError(Exception):
    """Root of every error that this program raises on purpose."""


class ConfigError(IngressError):
    """The configuration is invalid. The text is for its author; one line per correction."""


class NoCredentials(ConfigError):
    """There are no credentials for an API server; commands that can do without one continue."""


class UsageError(IngressError):
    """A command, or a form of the status page, got malformed input. The text gives the correct form."""


class KubeError(IngressError):
    """The API server rejected a request or failed.

    Attributes:
        status: HTTP status of the response, None without a response.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class KubeUnavailable(KubeError):
    """No usable response: connect error, timeout, 5xx, 429.

    Attributes:
        retry_after: seconds to wait according to the API server (``Retry-After``), None without that header.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after


class KubeUnreachable(KubeUnavailable):
    """No connection to the API server, or it was interrupted. The client logs an outage, so callers need not."""


class KubeTimeout(KubeUnavailable):
    """The API server accepted the request and did not respond in time."""


class KubeConflict(KubeError):
    """409: the object changed since it was read."""


class KubeGone(KubeError):
    """410: the resource version or continue token is too old; only a full list helps."""


class KubeForbidden(KubeError):
    """401 or 403: the credentials are not accepted, or lack a permission."""


class KubeNotFound(KubeError):
    """404: no such object, or the API server does not know the kind (its CRD is not installed)."""


class GatewayError(IngressError):
    """A gateway rejected or failed.

    Attributes:
        status: HTTP status of the response, None without a response.
        sent: whether the request may have been applied although the response is missing or an error. When
            in doubt it is True: the caller must treat the record as *unknown*, never as *not written*.
        cause: what the message says about the cluster, without the request that found it; empty: the same.
    """

    cause = ""

    def __init__(self, message: str, *, status: int | None = None, sent: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent


class GatewayUnavailable(GatewayError):
    """Transient: connect error, timeout, truncated reply, 5xx, 429.

    Attributes:
        retry_after: seconds to wait according to the gateway, None without that header.
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
    """4xx: the gateway rejects this body. Terminal until the body changes.

    Attributes:
        status: HTTP status of the response.
        message: the gateway's error, as shown to the owner of the record.
    """

    status: int

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}", status=status, sent=False)
        self.message = message


class GatewayRedirected(GatewayError):
    """3xx: the server at the address of the Admin API redirects requests; no redirect was followed."""


class GatewayUnauthorized(GatewayError):
    """401 or 403: the admin key or client certificate of the whole cluster is not accepted."""

    def __init__(self, message: str, *, status: int | None = None, sent: bool = False) -> None:
        super().__init__(message, status=status, sent=sent)


class LeadershipLost(IngressError):
    """The lease is lost, or may have run out by the monotonic clock: nothing more may be written."""
