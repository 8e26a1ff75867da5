"""Codes 02, 08 and 09: values of fields, what has no effect, and other mistakes."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import FALSE, KEPT, LINTED, WARNED, Code

VALUE_CODES = (
    Code(
        "AIX0201",
        "InvalidSpec",
        "A field is missing or has an invalid value",
        KEPT,
        "Correct the field that the message names; `apisix-ingress crds` prints the schema of each kind.",
    ),
    Code(
        "AIX0202",
        "InvalidAddress",
        "A value is neither an IP address nor a CIDR range",
        KEPT,
        "Write it as `10.0.0.1` or `10.0.0.0/8`.",
    ),
    Code(
        "AIX0203",
        "InvalidNode",
        "An external node is neither a host name nor an IP address",
        KEPT,
        "Use a lower-case host name or an address, without port and scheme.",
    ),
    Code(
        "AIX0204",
        "InvalidNumber",
        "A number in a credential is out of range",
        f"{WARNED} The default is used instead.",
        "Use an integer that is at least the minimum in the message.",
    ),
    Code(
        "AIX0205",
        "InvalidUsername",
        "The username derived from the namespace and name of an ApisixConsumer is invalid",
        f"{FALSE} The gateway rejects the consumer.",
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
        KEPT,
        "Remove the character; the message gives its code point. It may be invisible in an editor.",
    ),
    Code(
        "AIX0208",
        "WeightsZero",
        "All backends of a rule have weight 0",
        f"{WARNED} The gateway treats them as equal weights.",
        "Set a weight for one of them, or remove the rule.",
    ),
    Code(
        "AIX0801",
        "UnknownField",
        "An object has a field that its kind does not define",
        "The object is published without it; `lint` and `translate` report it. An API server drops such a field.",
        "Correct its name or indentation; the message names the most similar field.",
    ),
    Code(
        "AIX0802",
        "UnknownAnnotation",
        "An annotation k8s.apisix.apache.org/… has no effect",
        f"{LINTED} The annotation is ignored.",
        "Correct its name, set the annotation it depends on (`enable-cors` for `cors-…`), or remove it.",
    ),
    Code(
        "AIX0803",
        "ForeignAnnotation",
        "An Ingress of this controller has an annotation of another controller",
        f"{LINTED} The annotation has no effect here.",
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
    Code(
        "AIX0806",
        "NotChecked",
        "An object, or a part of it, was not checked",
        "None: it may be right or wrong. `lint` lists it as a note, and its exit status is 3 if there is nothing else.",
        "Add the missing files, read the cluster as well with `--live`, or accept it with `--allow-unchecked`. The"
        " message names the reason: the Gateway, the class or the Services are not among the files, another controller"
        " serves the object, or its kind is not supported.",
    ),
    Code(
        "AIX0807",
        "SettingWithoutEffect",
        "A setting of a GatewayProxy has no effect",
        "The setting is ignored. Only `lint` reports it.",
        "Use the setting of the controller that the message names.",
    ),
    Code(
        "AIX0901",
        "InternalError",
        "The translation of an object crashed because of a bug in the controller",
        KEPT,
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
)
