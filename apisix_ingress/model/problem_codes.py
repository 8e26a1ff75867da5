"""The registry of problem codes: for each word that a problem bears its number, what it means and what to do.

Numbers are for good: one that is out of use is never given to another word. They are grouped by hundreds: 00 files,
01 what is referred to, 02 values, 03 Secrets and certificates, 04 plugins, 05 hosts and paths, 06 what settings refuse,
07 gateway clusters, 08 what does nothing, 09 the rest. The pages in docs/reference/codes are made from it.
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
        title: A sentence without its full stop.
        effect: What becomes of the object.
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
        """What happens, what to do and how to leave it out, as Markdown; the last line has no end."""
        leave_out = f"`--suppress {self.number}`, or for one object `--suppress '{self.number}=KIND NAMESPACE/NAME'`"
        return (
            f"**What happens.** {self.effect}\n\n**What to do.** {self.remedy}\n\n"
            f"To leave it out of `lint`: {leave_out}."
        )


_KEPT = "Nothing new is published for the object; what gateways have for it stays as it is."
_FALSE = "The object is published, and its condition is False."
_TOLD = "The object is published and its condition is True; the problem is told by `lint`, `translate` and the log."
_LINTED = "The object is published and its condition is True; only `lint` and the webhook tell."
_UNREAD = "What is not read gives no records. The other documents of the file count all the same."
_WITHDRAWN = "Nothing is published for the object, and what gateways have for it is withdrawn."

_ALL = (
    # Files.
    Code(
        "AIX0001",
        "ManifestInvalid",
        "A file, or a document in it, can't be read",
        _UNREAD,
        "Correct the line that the message names: YAML that is none, a key given twice, a missing `kind` or"
        " `metadata.name`, an object that stands in two files, a file that may not be read.",
    ),
    Code(
        "AIX0002",
        "KindNotRead",
        "An object was meant for this controller, but its kind or apiVersion is not read",
        _UNREAD,
        "Use the `apiVersion` that the message names, or correct the kind.",
    ),
    # What is referred to.
    Code(
        "AIX0101",
        "ServiceNotFound",
        "A Service that is named does not exist",
        f"{_KEPT} An ApisixUpstream without its Service has no effect yet, and its condition is False.",
        "Create the Service or correct its name and namespace. Offline, give the manifest of the Service as well.",
    ),
    Code(
        "AIX0102",
        "PortNotFound",
        "The Service has no port of this number or name",
        _KEPT,
        "Use one of the ports that the message lists; a number must not be in quotes.",
    ),
    Code(
        "AIX0103",
        "UpstreamNotFound",
        "An ApisixUpstream that a route names does not exist, or is of another class",
        _KEPT,
        "Create it in the namespace of the route, or correct the name.",
    ),
    Code(
        "AIX0104",
        "PluginConfigNotFound",
        "An ApisixPluginConfig that is named does not exist, or is of another class",
        _KEPT,
        "Create it or correct the name and namespace.",
    ),
    Code(
        "AIX0105",
        "SecretNotFound",
        "A Secret that is named does not exist",
        _KEPT,
        "Create it or correct the name and namespace. From another namespace it may need a ReferenceGrant there.",
    ),
    Code(
        "AIX0106",
        "SubsetNotFound",
        "A route names a subset that the ApisixUpstream of the Service does not define",
        f"{_FALSE} The upstream has no nodes: requests get 503.",
        "Define the subset in `spec.subsets` of the ApisixUpstream, or correct its name.",
    ),
    Code(
        "AIX0107",
        "NotExternal",
        "A route names an ApisixUpstream in `upstreams` that has no nodes of its own",
        _KEPT,
        "Give it `externalNodes` or `discovery`, or name its Service in `backends` instead.",
    ),
    Code(
        "AIX0108",
        "NotExternalName",
        "An external node of type Service names a Service that is not of type ExternalName",
        _KEPT,
        "Use type Domain with a host name, or name the Service in `backends` of the route.",
    ),
    Code(
        "AIX0109",
        "NoClusterAddress",
        "resolveGranularity: service is asked of a headless Service",
        _KEPT,
        "Leave `resolveGranularity` out, so that its endpoints are used.",
    ),
    Code(
        "AIX0110",
        "BackendUnsupported",
        "A backend of an Ingress is no Service",
        _KEPT,
        "Use `backend.service`.",
    ),
    Code(
        "AIX0111",
        "SubsetUnused",
        "A backend has a subset and resolveGranularity: service",
        f"{_TOLD} Every Pod gets requests: the node is the address of the Service.",
        "Leave `resolveGranularity` out, so that the Pods of the subset are the nodes, or leave the subset out.",
    ),
    # Values.
    Code(
        "AIX0201",
        "InvalidSpec",
        "A field is missing, or has a value that its kind does not take",
        _KEPT,
        "Correct the field that the message names; `apisix-ingress crds` prints what each kind takes.",
    ),
    Code(
        "AIX0202",
        "InvalidAddress",
        "A text is neither an IP address nor a CIDR range",
        _KEPT,
        "Write it as `10.0.0.1` or `10.0.0.0/8`.",
    ),
    Code(
        "AIX0203",
        "InvalidNode",
        "An external node is neither a host name nor an IP address",
        _KEPT,
        "Write a host name in lower case, or an address, without port and scheme.",
    ),
    Code(
        "AIX0204",
        "InvalidNumber",
        "A number of a credential is out of range",
        f"{_TOLD} The default counts instead.",
        "Write a whole number from the one on that the message names.",
    ),
    Code(
        "AIX0205",
        "InvalidUsername",
        "Gateways refuse the username that namespace and name of an ApisixConsumer give",
        f"{_FALSE} The gateway refuses the consumer.",
        "Choose a name of letters, digits and `-`, with the namespace at most 256 characters.",
    ),
    Code(
        "AIX0206",
        "InvalidAnnotation",
        "An annotation has a value that is not understood",
        "With a warning the value is left out; with an error nothing new is published.",
        "Write the value as the message says.",
    ),
    Code(
        "AIX0207",
        "ControlCharacter",
        "A text holds a control character, or one that reorders what people read",
        _KEPT,
        "Remove the character that the message names by its code point. It may be invisible in an editor.",
    ),
    Code(
        "AIX0208",
        "WeightsZero",
        "All backends of a rule have weight 0",
        f"{_TOLD} The gateway takes that for equal weights.",
        "Give one of them a weight, or remove the rule.",
    ),
    # Secrets and certificates.
    Code(
        "AIX0301",
        "InvalidCertificate",
        "A Secret holds no certificate and key that belong together",
        _KEPT,
        "Put a PEM certificate under `tls.crt` and its private key under `tls.key` (`ca.crt` for a client's CA).",
    ),
    Code(
        "AIX0302",
        "CertificateExpired",
        "A certificate has expired, or is not valid yet",
        f"{_TOLD} Clients refuse it.",
        "Renew the certificate in the Secret; the new one is followed at once.",
    ),
    Code(
        "AIX0303",
        "HostNotCovered",
        "The certificate does not name a host that is served with it",
        f"{_TOLD} Clients refuse it for that host.",
        "Issue a certificate that names the host, or remove the host.",
    ),
    Code(
        "AIX0304",
        "NoHosts",
        "It can't be told for which hosts a certificate is",
        _KEPT,
        "Add `tls.hosts`.",
    ),
    Code(
        "AIX0305",
        "SecretNotNamed",
        "A tls entry of an Ingress names no Secret",
        f"{_TOLD} The entry does nothing.",
        "Add `secretName`, or remove the entry.",
    ),
    Code(
        "AIX0306",
        "InvalidSecret",
        "A Secret lacks a value, or holds one that is not understood",
        _KEPT,
        "Put the value that the message names into the Secret.",
    ),
    Code(
        "AIX0307",
        "NoCredentials",
        "An ApisixConsumer has no way to authenticate",
        f"{_TOLD} Nobody can come in as this consumer.",
        "Add `spec.authParameter`.",
    ),
    Code(
        "AIX0308",
        "CredentialsTwice",
        "An ApisixConsumer has several ways to authenticate",
        f"{_TOLD} Only the first one counts.",
        "Remove all but one; make a consumer for each.",
    ),
    Code(
        "AIX0309",
        "JwtKeyMissing",
        "A JWT credential lacks the key that its algorithm needs",
        f"{_TOLD} Current gateways refuse the consumer.",
        "Add `secret` for HS algorithms, `public_key` for the others.",
    ),
    # Plugins.
    Code(
        "AIX0401",
        "PluginTwice",
        "A plugin is configured twice in one place",
        f"{_TOLD} One of them counts: the message says which.",
        "Remove the other one.",
    ),
    Code(
        "AIX0402",
        "PluginReplaced",
        "A route has a traffic-split plugin and several backends",
        f"{_TOLD} The one for the backends takes the plugin's place.",
        "Use one backend, or remove the plugin.",
    ),
    Code(
        "AIX0403",
        "MetadataDiffers",
        "Plugin metadata differ between gateway clusters",
        _KEPT,
        "Give the plugin the same metadata in every cluster.",
    ),
    # Hosts and paths.
    Code(
        "AIX0501",
        "InvalidHost",
        "A text is no host name",
        _KEPT,
        "Write it without scheme, port and path; international names in their ASCII form (`xn--`).",
    ),
    Code(
        "AIX0502",
        "HostMixesScripts",
        "A host has letters of several scripts in one word",
        f"{_TOLD} It may be an imitation of another host.",
        "Check who asked for it; rename it if it is a slip.",
    ),
    Code(
        "AIX0503",
        "HostNeverMatches",
        "A host has a port, so that no request matches it",
        f"{_TOLD} No request gets to the rule by this host.",
        "Leave the port out.",
    ),
    Code(
        "AIX0504",
        "PathNeverMatches",
        "A path does not begin with a slash, so that no request matches it",
        f"{_TOLD} No request gets to the rule by this path.",
        "Begin it with `/`.",
    ),
    Code(
        "AIX0505",
        "PathTwice",
        "An Ingress has one host and path twice",
        f"{_TOLD} The last one gets the requests, as with 1.8.",
        "Remove one of them.",
    ),
    Code(
        "AIX0506",
        "TooManyPaths",
        "An object has more pairs of host and path than are compared with others",
        _KEPT,
        "Make several objects of it.",
    ),
    Code(
        "AIX0507",
        "Conflicted",
        "An older object has the same host and path, record, plugin or server name",
        f"{_FALSE} The older object gets the requests. Of one second, or in manifests, which tell no age, it is the"
        " first by namespace and name.",
        "Remove one of the two, or tell them apart by host, path or method.",
    ),
    Code(
        "AIX0508",
        "TooManyHosts",
        "An object names more hosts than are compared with others",
        _KEPT,
        "Make several objects of it.",
    ),
    Code(
        "AIX0509",
        "HostConflict",
        "One host has several certificates, or several demands on clients",
        "In one namespace it is told, and a gateway shows one of them. A host that an older object of another namespace"
        " has is left out of this one, whose condition is False.",
        "Use the same certificate in both, or another host.",
    ),
    Code(
        "AIX0510",
        "MatchTwice",
        "Two rules of an ApisixRoute have the same match and the same priority",
        "Both are published. Only one of them gets the requests, and which one is up to the gateway.",
        "Remove one, tell them apart, or give them different priorities.",
    ),
    Code(
        "AIX0511",
        "HostNotOwned",
        "A host belongs to another namespace",
        "The host is left out, and a rule or certificate without any other host is not published. The rest of the"
        " object is, and its condition is False.",
        "Use another host, or have an object in the owner's namespace annotated with"
        " `apisix.apache.org/share-hosts-with: YOUR-NAMESPACE`. Rules for every host, and wildcards over hosts of"
        " others, need the annotation `apisix.apache.org/hosts` on your Namespace, which the operator sets. See"
        " `kubernetes.host_ownership`.",
    ),
    Code(
        "AIX0512",
        "HostShared",
        "A host is used in several namespaces",
        "The object is published and its condition is True; the message of the condition says so, and so does"
        " `lint`. By path, priority or a more specific host the rules of one namespace may take requests of the other.",
        "Use different hosts, or have `kubernetes.host_ownership: namespace` set, so that a host belongs to one"
        " namespace.",
    ),
    Code(
        "AIX0513",
        "TooLarge",
        "Too much would be sent for an object, or a Service has too many endpoints",
        "What was published last stays, and the condition is False, of an object that becomes more than 32 MiB of"
        " records and Secrets, that takes more than 64 KiB of one Secret for a plugin, a consumer or as a"
        " certificate, key or CA, or with which the objects of its namespace would become more than 128 MiB of"
        " records. Of a Service with more than 10,000 nodes in all its upstreams, each upstream gets an equal share"
        " of them, and the Service an Event.",
        "Refer to smaller Secrets, and to large ones and large settings less often. Make several objects of a large"
        " one. Delete objects that are not needed.",
    ),
    # What settings refuse.
    Code(
        "AIX0601",
        "CodeRefused",
        "An object holds code for the gateway, which the settings refuse",
        _WITHDRAWN,
        "Remove it, or ask whoever runs the controller about `kubernetes.code_plugins`.",
    ),
    Code(
        "AIX0602",
        "SecretReferenceRefused",
        "A text refers to a secret or an environment variable of the gateway, which the settings refuse",
        _WITHDRAWN,
        "Write the value, or take it from a Secret; or ask about `kubernetes.secret_references`.",
    ),
    Code(
        "AIX0603",
        "AddressRefused",
        "A host is internal: the gateway itself, a link-local address, an Admin API or what the operator lists",
        _WITHDRAWN,
        "Name another host, or ask whoever runs the controller about `kubernetes.external_addresses` and "
        "`kubernetes.internal_addresses`.",
    ),
    Code(
        "AIX0604",
        "PluginRefused",
        "A plugin, or a field of one, is not among those that were reviewed for gateways that teams share",
        _WITHDRAWN,
        "Remove it, or do as the message says. The reference page `plugins-multi-tenant` lists plugins and fields with"
        " the reasons. Or ask whoever runs the controller about `kubernetes.plugins`.",
    ),
    Code(
        "AIX0605",
        "ForeignAddress",
        "A host is an address or a name of another namespace, or of the API server",
        _WITHDRAWN,
        "Name another host, or have a ReferenceGrant for the Service made in that namespace. Or ask whoever runs the "
        "controller about `kubernetes.external_addresses`.",
    ),
    # Gateway clusters.
    Code(
        "AIX0701",
        "ClusterNotFound",
        "No gateway cluster has the name that plugin metadata are for",
        f"{_TOLD} The metadata of that cluster are left out.",
        "Use a name from `clusters` in the settings.",
    ),
    Code(
        "AIX0702",
        "AdminUrlInvalid",
        "spec.admin.baseURL of an ApisixClusterConfig can't be an Admin API",
        f"{_KEPT} The cluster is talked to where it was.",
        "Write it as `http://gateway:9180/apisix/admin`.",
    ),
    Code(
        "AIX0703",
        "AdminKeyInvalid",
        "spec.admin.adminKey of an ApisixClusterConfig can't be sent",
        f"{_KEPT} The cluster is talked to where it was.",
        "Write the key alone, without spaces and line breaks.",
    ),
    Code(
        "AIX0704",
        "AdminKeyPublished",
        "The admin key is one that is printed in the documentation of APISIX",
        f"{_TOLD} With `preset: multi-tenant` it is refused.",
        "Give the gateway a key of your own, and the object the same.",
    ),
    # What does nothing.
    Code(
        "AIX0801",
        "UnknownField",
        "A field that the kind does not have",
        "The object is published without it; `lint` and `translate` tell. An API server drops such a field.",
        "Correct its name or indentation; the message names the field that is spelt most alike.",
    ),
    Code(
        "AIX0802",
        "UnknownAnnotation",
        "An annotation under k8s.apisix.apache.org/ that does nothing",
        f"{_LINTED} The annotation is not read.",
        "Correct its name, set what it belongs to (`enable-cors` for `cors-…`), or remove it.",
    ),
    Code(
        "AIX0803",
        "ForeignAnnotation",
        "An annotation for another controller on an Ingress of this one",
        f"{_LINTED} The annotation does nothing here.",
        "Use the annotation or plugin that does the same, or remove it.",
    ),
    Code(
        "AIX0804",
        "NothingGiven",
        "The ConfigMap of plugin metadata has nothing under its key",
        "No plugin has metadata.",
        "Put the list of clusters under the key, or remove the setting.",
    ),
    Code(
        "AIX0805",
        "ClassTwice",
        "An Ingress names two classes, by annotation and by field",
        "The annotation counts; the field does nothing.",
        "Remove `kubernetes.io/ingress.class`, or make both the same.",
    ),
    # The rest.
    Code(
        "AIX0901",
        "InternalError",
        "The translation of an object crashed: a bug of the controller",
        _KEPT,
        "Report it with the object and the log line.",
    ),
    Code(
        "AIX0902",
        "NestedTooDeeply",
        "An object has more than 200 levels of lists and mappings",
        "The object is not read; its condition is False. Its last generation that could be read stays in effect. If "
        "there is none, as after a restart, what gateways have for the object stays as it is.",
        "Flatten the object; what plugins need has few levels.",
    ),
)

CODES: Mapping[str, Code] = {code.word: code for code in _ALL}
"""Word → code."""

NUMBERS: Mapping[str, Code] = {code.number: code for code in _ALL}
"""Number → code."""


def find_code(text: str) -> Code:
    """Return the code that people name by number or word, in any case.

    Raises:
        ValueError: There is none; the message names the nearest.
    """
    known = {name.lower(): code for name, code in (*CODES.items(), *NUMBERS.items())}
    if code := known.get(text.lower()):
        return code
    near = difflib.get_close_matches(text.lower(), known, n=1, cutoff=0.6)
    advice = f", did you mean {known[near[0]]}?" if near else ": write it as AIX0101"
    raise ValueError(f"{text or repr(text)} is no code{advice}")
