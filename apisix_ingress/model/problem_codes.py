"""The registry of problem codes: the number, meaning, effect and remedy of each code word.

Numbers never change, and the number of a retired code is never reused. They are grouped by hundreds: 00 files,
01 references, 02 values, 03 Secrets and certificates, 04 plugins, 05 hosts and paths, 06 refused by settings,
07 gateway clusters, 08 without effect, 09 other,
10 Gateway API. The pages in docs/reference/codes are generated from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake.

    Attributes:
        number: e.g. `AIX0101`.
        word: The code of problems, e.g. `ServiceNotFound`.
        title: A sentence without the full stop.
        effect: What happens to the object.
        remedy: What to do.
    """

    number: str
    word: str
    title: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        """Render as messages show it: `AIX0101 ServiceNotFound`."""
        return f"{self.number} {self.word}"

    @property
    def explanation(self) -> str:
        """The effect, the remedy and how to suppress the code, as Markdown without a final newline."""
        suppress = f"`--suppress {self.number}`, or, for one object, `--suppress '{self.number}=KIND NAMESPACE/NAME'`"
        return f"**Effect.** {self.effect}\n\n**Remedy.** {self.remedy}\n\nTo suppress it in `lint`: {suppress}."


_KEPT = "This version of the object is not published; the last valid version, if any, stays in the gateways."
_FALSE = "The object is published, and its condition is False."
_WARNED = "The object is published and its condition is True; `lint`, `translate` and the log report the problem."
_LINTED = "The object is published and its condition is True; only `lint` and the webhook report it."
_UNREAD = "The document is skipped; the other documents of the file are used."
_WITHDRAWN = "The object is not published, and its records are removed from the gateways."

_DETACHED = "The route is not attached there: the condition Accepted of that parent is False."
_SHARE = "The condition ResolvedRefs is False; requests for that backend are answered with 500."

_ALL = (
    # Files.
    Code(
        "AIX0001",
        "ManifestInvalid",
        "A file, or a document in it, cannot be read",
        _UNREAD,
        "Correct the line that the message names: invalid YAML, a duplicate key, a missing `kind` or"
        " `metadata.name`, an object that is defined in two files, a file without read permission.",
    ),
    Code(
        "AIX0002",
        "KindNotRead",
        "An object for this controller has an unsupported kind or apiVersion",
        _UNREAD,
        "Use the `apiVersion` that the message names, or correct the kind.",
    ),
    # References.
    Code(
        "AIX0101",
        "ServiceNotFound",
        "A referenced Service does not exist",
        f"{_KEPT} An ApisixUpstream without its Service has no effect yet, and its condition is False.",
        "Create the Service, or correct its name and namespace. Offline, also pass the manifest of the Service.",
    ),
    Code(
        "AIX0102",
        "PortNotFound",
        "The Service has no port with this number or name",
        _KEPT,
        "Use one of the ports that the message lists. Do not put a number in quotes.",
    ),
    Code(
        "AIX0103",
        "UpstreamNotFound",
        "A referenced ApisixUpstream does not exist or has another class",
        _KEPT,
        "Create it in the namespace of the route, or correct the name.",
    ),
    Code(
        "AIX0104",
        "PluginConfigNotFound",
        "A referenced ApisixPluginConfig does not exist or has another class",
        _KEPT,
        "Create it, or correct the name and namespace.",
    ),
    Code(
        "AIX0105",
        "SecretNotFound",
        "A referenced Secret does not exist",
        _KEPT,
        "Create it, or correct the name and namespace. A Secret in another namespace may need a ReferenceGrant there.",
    ),
    Code(
        "AIX0106",
        "SubsetNotFound",
        "A route uses a subset that the ApisixUpstream of the Service does not define",
        f"{_FALSE} The upstream has no nodes: requests get 503.",
        "Define the subset in `spec.subsets` of the ApisixUpstream, or correct its name.",
    ),
    Code(
        "AIX0107",
        "NotExternal",
        "A route lists an ApisixUpstream without nodes in `upstreams`",
        _KEPT,
        "Give it `externalNodes` or `discovery`, or use its Service in `backends` instead.",
    ),
    Code(
        "AIX0108",
        "NotExternalName",
        "An external node of type Service refers to a Service that is not of type ExternalName",
        _KEPT,
        "Use type Domain with a host name, or use the Service in `backends` of the route.",
    ),
    Code(
        "AIX0109",
        "NoClusterAddress",
        "resolveGranularity: service is set for a headless Service",
        _KEPT,
        "Remove `resolveGranularity`, so that the endpoints of the Service are used.",
    ),
    Code(
        "AIX0110",
        "BackendUnsupported",
        "A backend of an Ingress is not a Service",
        _KEPT,
        "Use `backend.service`.",
    ),
    Code(
        "AIX0111",
        "SubsetUnused",
        "A backend has a subset and resolveGranularity: service",
        f"{_WARNED} Every Pod gets requests, because the node is the address of the Service.",
        "Remove `resolveGranularity`, so that the Pods of the subset are the nodes, or remove the subset.",
    ),
    # Values.
    Code(
        "AIX0201",
        "InvalidSpec",
        "A field is missing or has an invalid value",
        _KEPT,
        "Correct the field that the message names; `apisix-ingress crds` prints the schema of each kind.",
    ),
    Code(
        "AIX0202",
        "InvalidAddress",
        "A value is neither an IP address nor a CIDR range",
        _KEPT,
        "Write it as `10.0.0.1` or `10.0.0.0/8`.",
    ),
    Code(
        "AIX0203",
        "InvalidNode",
        "An external node is neither a host name nor an IP address",
        _KEPT,
        "Use a lower-case host name or an address, without port and scheme.",
    ),
    Code(
        "AIX0204",
        "InvalidNumber",
        "A number in a credential is out of range",
        f"{_WARNED} The default is used instead.",
        "Use an integer that is at least the minimum in the message.",
    ),
    Code(
        "AIX0205",
        "InvalidUsername",
        "The username derived from the namespace and name of an ApisixConsumer is invalid",
        f"{_FALSE} The gateway rejects the consumer.",
        "Choose a name of letters, digits and `-`; together with the namespace it has at most 256 characters.",
    ),
    Code(
        "AIX0206",
        "InvalidAnnotation",
        "An annotation has an invalid value",
        "If it is a warning, the annotation is ignored; if it is an error, the object is not published.",
        "Correct the value as the message describes.",
    ),
    Code(
        "AIX0207",
        "ControlCharacter",
        "A string contains a control character, or one that reorders displayed text",
        _KEPT,
        "Remove the character; the message gives its code point. It may be invisible in an editor.",
    ),
    Code(
        "AIX0208",
        "WeightsZero",
        "All backends of a rule have weight 0",
        f"{_WARNED} The gateway treats them as equal weights.",
        "Set a weight for one of them, or remove the rule.",
    ),
    # Secrets and certificates.
    Code(
        "AIX0301",
        "InvalidCertificate",
        "A Secret does not contain a certificate with its private key",
        _KEPT,
        "Put a PEM certificate under `tls.crt` and its private key under `tls.key` (a client CA under `ca.crt`).",
    ),
    Code(
        "AIX0302",
        "CertificateExpired",
        "A certificate has expired or is not valid yet",
        f"{_WARNED} Clients reject it.",
        "Renew the certificate in the Secret; the new one is published immediately.",
    ),
    Code(
        "AIX0303",
        "HostNotCovered",
        "The certificate does not cover a host that it is served for",
        f"{_WARNED} Clients reject it for that host.",
        "Issue a certificate that covers the host, or remove the host.",
    ),
    Code(
        "AIX0304",
        "NoHosts",
        "The hosts of a certificate cannot be determined",
        _KEPT,
        "Add `tls.hosts`.",
    ),
    Code(
        "AIX0305",
        "SecretNotNamed",
        "A tls entry of an Ingress has no `secretName`",
        f"{_WARNED} The entry has no effect.",
        "Add `secretName`, or remove the entry.",
    ),
    Code(
        "AIX0306",
        "InvalidSecret",
        "A Secret lacks a value or contains an invalid one",
        _KEPT,
        "Put the value that the message names into the Secret.",
    ),
    Code(
        "AIX0307",
        "NoCredentials",
        "An ApisixConsumer has no credentials",
        f"{_WARNED} No request can authenticate as this consumer.",
        "Add `spec.authParameter`.",
    ),
    Code(
        "AIX0308",
        "CredentialsTwice",
        "An ApisixConsumer has several credentials",
        f"{_WARNED} Only the first is used.",
        "Remove all but one; create a consumer for each.",
    ),
    Code(
        "AIX0309",
        "JwtKeyMissing",
        "A JWT credential lacks the key that its algorithm requires",
        f"{_WARNED} Current gateways reject the consumer.",
        "Add `secret` for HS algorithms, `public_key` for the others.",
    ),
    # Plugins.
    Code(
        "AIX0401",
        "PluginTwice",
        "A plugin is configured twice in one place",
        f"{_WARNED} The message names the configuration that is used.",
        "Remove the other one.",
    ),
    Code(
        "AIX0402",
        "PluginReplaced",
        "A route has a traffic-split plugin and several backends",
        f"{_WARNED} The split between the backends replaces the plugin.",
        "Use one backend, or remove the plugin.",
    ),
    Code(
        "AIX0403",
        "MetadataDiffers",
        "Plugin metadata differs between gateway clusters",
        _KEPT,
        "Configure the same metadata for the plugin in every cluster.",
    ),
    # Hosts and paths.
    Code(
        "AIX0501",
        "InvalidHost",
        "A value is not a host name",
        _KEPT,
        "Write it without scheme, port and path; write international names in ASCII (`xn--`).",
    ),
    Code(
        "AIX0502",
        "HostMixesScripts",
        "A label of a host mixes letters of several scripts",
        f"{_WARNED} It may imitate another host.",
        "Check who requested it; rename it if it is a mistake.",
    ),
    Code(
        "AIX0503",
        "HostNeverMatches",
        "A host contains a port, so no request matches it",
        f"{_WARNED} No request reaches the rule by this host.",
        "Remove the port.",
    ),
    Code(
        "AIX0504",
        "PathNeverMatches",
        "A path does not begin with a slash, so no request matches it",
        f"{_WARNED} No request reaches the rule by this path.",
        "Begin it with `/`.",
    ),
    Code(
        "AIX0505",
        "PathTwice",
        "An Ingress contains the same host and path twice",
        f"{_WARNED} The last one gets the requests, as in 1.8.",
        "Remove one of them.",
    ),
    Code(
        "AIX0506",
        "TooManyPaths",
        "An object has too many combinations of host and path",
        _KEPT,
        "Split the object.",
    ),
    Code(
        "AIX0507",
        "Conflicted",
        "An older object has the same host and path, record, plugin or server name",
        f"{_FALSE} The older object wins. On a tie, or if the age is unknown (local manifests), the first by"
        " namespace and name wins.",
        "Remove one of them, or change its host, path or method.",
    ),
    Code(
        "AIX0508",
        "TooManyHosts",
        "An object has too many hosts",
        _KEPT,
        "Split the object.",
    ),
    Code(
        "AIX0509",
        "HostConflict",
        "A host has several certificates or several client-auth settings",
        "Within a namespace this is a warning, and the gateway serves one of them. Across namespaces the older"
        " object wins; the host is skipped for the other object, whose condition is False.",
        "Use the same certificate in both, or another host.",
    ),
    Code(
        "AIX0510",
        "MatchTwice",
        "Two rules of an ApisixRoute have the same match and the same priority",
        "Both are published. Only one of them gets the requests; which one is undefined.",
        "Remove one, make their matches different, or set different priorities.",
    ),
    Code(
        "AIX0511",
        "HostNotOwned",
        "A host belongs to another namespace",
        "The host is skipped; a rule or certificate without any other host is not published. The rest of the"
        " object is published, and its condition is False.",
        "Use another host, or annotate an object in the owner's namespace with"
        " `apisix.apache.org/share-hosts-with: YOUR-NAMESPACE`. Rules without a host, and wildcards over hosts of"
        " other namespaces, need the annotation `apisix.apache.org/hosts` on your Namespace, which the operator"
        " sets. See `kubernetes.host_ownership`.",
    ),
    Code(
        "AIX0512",
        "HostShared",
        "A host is used in several namespaces",
        "The object is published and its condition is True; the message of the condition and `lint` report it."
        " Through its path, priority or a more specific host, a rule of one namespace may match requests of the"
        " other.",
        "Use different hosts, or set `kubernetes.host_ownership: namespace`, so that a host belongs to one namespace.",
    ),
    Code(
        "AIX0513",
        "TooLarge",
        "An object generates too much data, or a Service has too many endpoints",
        "The last valid version stays, and the condition is False, if an object generates more than 32 MiB of records"
        " and Secrets, if it uses more than 64 KiB of one Secret for a plugin, a consumer or as a certificate, key or"
        " CA, or if the objects of its namespace would generate more than 128 MiB of records. If a Service has more"
        " than 10,000 nodes in all its upstreams, each upstream gets an equal share of them, and the Service gets an"
        " Event.",
        "Refer to smaller Secrets, and less often to large ones and to large settings. Split a large object. Delete"
        " unused objects.",
    ),
    # Refused by settings.
    Code(
        "AIX0601",
        "CodeRefused",
        "An object contains code for the gateway, which the settings refuse",
        _WITHDRAWN,
        "Remove it, or ask the operator about `kubernetes.code_plugins`.",
    ),
    Code(
        "AIX0602",
        "SecretReferenceRefused",
        "A value refers to a secret or environment variable of the gateway, which the settings refuse",
        _WITHDRAWN,
        "Write the value, or read it from a Secret; or ask the operator about `kubernetes.secret_references`.",
    ),
    Code(
        "AIX0603",
        "AddressRefused",
        "A host is internal: the gateway itself, a link-local address, an Admin API or one the operator listed",
        _WITHDRAWN,
        "Use another host, or ask the operator about `kubernetes.external_addresses` and"
        " `kubernetes.internal_addresses`.",
    ),
    Code(
        "AIX0604",
        "PluginRefused",
        "A plugin or one of its fields has not been reviewed for shared gateways",
        _WITHDRAWN,
        "Remove it, or follow the message. The reference page `plugins-multi-tenant` lists plugins and fields"
        " with the reasons. Or ask the operator about `kubernetes.plugins`.",
    ),
    Code(
        "AIX0605",
        "ForeignAddress",
        "A host is an address or name of another namespace or of the API server",
        _WITHDRAWN,
        "Use another host, or have a ReferenceGrant for the Service created in that namespace. Or ask the"
        " operator about `kubernetes.external_addresses`.",
    ),
    Code(
        "AIX0606",
        "NginxNotServed",
        "An annotation of ingress-nginx has a value that is not valid, or protects something that cannot be protected",
        "The Ingress, or the paths that the annotation is about, are not served: they answer 404 or 503. Other "
        "Ingresses of the host are.",
        "Correct the value, or replace the annotation as the message says. "
        "The reference page `ingress-nginx` has the verdict on every annotation.",
    ),
    Code(
        "AIX0607",
        "NginxDiffers",
        "An annotation of ingress-nginx is served with a difference",
        "The object is published and its condition is True. `lint`, `translate` and the log report the difference.",
        "Read the difference in the message; the reference page `ingress-nginx` has the verdict on every annotation.",
    ),
    # Gateway clusters.
    Code(
        "AIX0701",
        "ClusterNotFound",
        "Plugin metadata is configured for an unknown gateway cluster",
        f"{_WARNED} The metadata of that cluster is ignored.",
        "Use a name from `clusters` in the settings.",
    ),
    Code(
        "AIX0702",
        "AdminUrlInvalid",
        "spec.admin.baseURL of an ApisixClusterConfig is not the URL of an Admin API",
        f"{_KEPT} The controller keeps using the previous address.",
        "Write it as `http://gateway:9180/apisix/admin`.",
    ),
    Code(
        "AIX0703",
        "AdminKeyInvalid",
        "spec.admin.adminKey of an ApisixClusterConfig cannot be sent",
        f"{_KEPT} The controller keeps using the previous address.",
        "Write only the key, without spaces and line breaks.",
    ),
    Code(
        "AIX0704",
        "AdminKeyPublished",
        "The admin key is one that APISIX publishes in its documentation",
        f"{_WARNED} With `preset: multi-tenant` it is refused.",
        "Set your own key in the gateway and in the object.",
    ),
    # Without effect.
    Code(
        "AIX0801",
        "UnknownField",
        "A field that the kind does not have",
        "The object is published without it; `lint` and `translate` report it. An API server drops such a field.",
        "Correct its name or indentation; the message names the most similar field.",
    ),
    Code(
        "AIX0802",
        "UnknownAnnotation",
        "An annotation under k8s.apisix.apache.org/ without effect",
        f"{_LINTED} The annotation is ignored.",
        "Correct its name, set the annotation it depends on (`enable-cors` for `cors-…`), or remove it.",
    ),
    Code(
        "AIX0803",
        "ForeignAnnotation",
        "An annotation of another controller on an Ingress of this one",
        f"{_LINTED} The annotation has no effect here.",
        "Use the equivalent annotation or plugin, or remove it.",
    ),
    Code(
        "AIX0804",
        "NothingGiven",
        "The ConfigMap of plugin metadata has no value under its key",
        "No plugin has metadata.",
        "Put the list of clusters under the key, or remove the setting.",
    ),
    Code(
        "AIX0805",
        "ClassTwice",
        "An Ingress specifies two classes, by annotation and by field",
        "The annotation is used; the field has no effect.",
        "Remove `kubernetes.io/ingress.class`, or make both the same.",
    ),
    # Other.
    Code(
        "AIX0901",
        "InternalError",
        "The translation of an object crashed because of a bug in the controller",
        _KEPT,
        "Report it with the object and the log line.",
    ),
    Code(
        "AIX0902",
        "NestedTooDeeply",
        "An object has more than 200 levels of nesting",
        "The object is not read; its condition is False. The last generation that could be read stays in effect."
        " If there is none, as after a restart, its records stay in the gateways.",
        "Flatten the object; plugins need only a few levels.",
    ),
    # The Gateway API; the words are those of its specification.
    Code(
        "AIX1001",
        "UnsupportedValue",
        "A route of the Gateway API needs a feature that gateways do not support",
        _KEPT,
        "Remove the field that the message names.",
    ),
    Code(
        "AIX1002",
        "IncompatibleFilters",
        "A rule has filters that exclude each other",
        _KEPT,
        "Remove one of them.",
    ),
    Code(
        "AIX1003",
        "InvalidParameters",
        "A GatewayClass or Gateway has parameters, which are not supported",
        "Its condition Accepted is False.",
        "Remove the parametersRef.",
    ),
    Code(
        "AIX1004",
        "NoMatchingParent",
        "A parentRef names no listener of its Gateway",
        _DETACHED,
        "Correct sectionName and port, or add the listener.",
    ),
    Code(
        "AIX1005",
        "NotAllowedByListeners",
        "No listener allows routes of this kind from this namespace",
        _DETACHED,
        "Have allowedRoutes of the listener changed, or use another Gateway.",
    ),
    Code(
        "AIX1006",
        "NoMatchingListenerHostname",
        "A route has no hostname in common with the listeners",
        _DETACHED,
        "Use a hostname that a listener has.",
    ),
    Code(
        "AIX1007",
        "InvalidKind",
        "A reference names a kind that is not supported",
        _SHARE,
        "Refer to a kind that the message names.",
    ),
    Code(
        "AIX1008",
        "BackendNotFound",
        "A backend of a route does not exist, or has no such port",
        _SHARE,
        "Create the Service, or correct name and port.",
    ),
    Code(
        "AIX1009",
        "RefNotPermitted",
        "A reference to another namespace lacks its ReferenceGrant",
        _SHARE,
        "Have a ReferenceGrant made in that namespace.",
    ),
    Code(
        "AIX1010",
        "Pending",
        "A Gateway has no address, since the pool is used up",
        _DETACHED,
        "Have `gateway_api.address_pool` enlarged.",
    ),
    Code(
        "AIX1011",
        "ListenerNotReady",
        "A listener of a Gateway conflicts with another one or cannot be served",
        "The listener is not served; its conditions have the reason of the specification. Other listeners are served.",
        "Do as the message says: use another port or hostname, or correct the reference.",
    ),
    Code(
        "AIX1012",
        "UnsupportedProtocol",
        "A backend of a route needs a protocol that gateways do not support",
        _SHARE,
        "Use APISIX 3.19 or later for BackendTLSPolicy, or remove the policy.",
    ),
)

CODES: Mapping[str, Code] = {code.word: code for code in _ALL}
"""Word → code."""

NUMBERS: Mapping[str, Code] = {code.number: code for code in _ALL}
"""Number → code."""


def find_code(text: str) -> Code:
    """Return the code with this number or word, in any case.

    Raises:
        ValueError: Unknown code; the message names the most similar one.
    """
    known = {name.lower(): code for name, code in (*CODES.items(), *NUMBERS.items())}
    if code := known.get(text.lower()):
        return code
    near = difflib.get_close_matches(text.lower(), known, n=1, cutoff=0.6)
    advice = f": did you mean {known[near[0]]}?" if near else " (codes look like AIX0101)"
    raise ValueError(f"unknown code {text or repr(text)}{advice}")
