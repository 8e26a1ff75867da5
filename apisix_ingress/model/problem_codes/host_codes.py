"""Codes 05: hosts and paths."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import FALSE, KEPT, WARNED, Code

HOST_CODES = (
    Code(
        "AIX0501",
        "InvalidHost",
        "A value is not a host name",
        KEPT,
        "Write it without scheme, port and path; write international names in ASCII (`xn--`).",
    ),
    Code(
        "AIX0502",
        "HostMixesScripts",
        "A label of a host mixes letters of several scripts",
        f"{WARNED} It may imitate another host.",
        "Check who requested it; rename it if it is a mistake.",
    ),
    Code(
        "AIX0503",
        "HostNeverMatches",
        "A host contains a port, so no request matches it",
        f"{WARNED} No request reaches the rule by this host.",
        "Remove the port.",
    ),
    Code(
        "AIX0504",
        "PathNeverMatches",
        "A path does not begin with a slash, so no request matches it",
        f"{WARNED} No request reaches the rule by this path.",
        "Begin it with `/`.",
    ),
    Code(
        "AIX0505",
        "PathTwice",
        "An Ingress contains the same host and path twice",
        f"{WARNED} The last one gets the requests, as in 1.8.",
        "Remove one of them.",
    ),
    Code(
        "AIX0506",
        "TooManyPaths",
        "An object has too many combinations of host and path",
        KEPT,
        "Split the object.",
    ),
    Code(
        "AIX0507",
        "Conflicted",
        "An older object has the same host and path, record, plugin or server name",
        f"{FALSE} The older object wins. On a tie, or if the age is unknown (local manifests), the first by"
        " namespace and name wins.",
        "Remove one of them, or change its host, path or method.",
    ),
    Code(
        "AIX0508",
        "TooManyHosts",
        "An object has too many hosts",
        KEPT,
        "Split the object.",
    ),
    Code(
        "AIX0509",
        "HostConflict",
        "A host has several certificates or several client-auth settings",
        "Within a namespace this is a warning, and the gateway serves one of them, unless one of the objects requires"
        " client certificates: the host is skipped for objects with other client-auth settings. Across namespaces the"
        " older object wins; the host is skipped for the other object, whose condition is False.",
        "Use the same certificate and client-auth settings in both, or another host.",
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
        " CA, or if the objects of its namespace would generate more than 128 MiB of records. With"
        " `plugins: reviewed`, each different regular expression of an object counts as 64 KiB. If a Service has more"
        " than 10,000 nodes in all its upstreams, each upstream gets an equal share of them, and the Service gets an"
        " Event.",
        "Refer to smaller Secrets, and less often to large ones and to large settings. Join regular expressions with"
        " `|`. Split a large object. Delete unused objects.",
    ),
    Code(
        "AIX0514",
        "PatternInvalid",
        "A regular expression of a condition cannot be compiled",
        "The gateway accepts the record, and the condition never holds: the rule gets no requests. Only `lint` reports"
        " it.",
        "Correct the regular expression, for example by closing its parentheses.",
    ),
    Code(
        "AIX0515",
        "PathHasWildcard",
        "A path of the Gateway API has an asterisk, which is not a wildcard there",
        "Only requests with an asterisk in their path match. Only `lint` reports it.",
        "Write `/` or `/foo` with type PathPrefix, without `*`, or use type RegularExpression.",
    ),
)
