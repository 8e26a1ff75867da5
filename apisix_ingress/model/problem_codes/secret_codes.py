"""Codes 03: Secrets and certificates."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import FALSE, KEPT, WARNED, Code

SECRET_CODES = (
    Code(
        "AIX0301",
        "InvalidCertificate",
        "A Secret does not contain a certificate with its private key",
        KEPT,
        "Put a PEM certificate under `tls.crt` and its private key under `tls.key` (a client CA under `ca.crt`).",
    ),
    Code(
        "AIX0302",
        "CertificateExpired",
        "A certificate has expired or is not valid yet",
        f"{WARNED} Clients reject it.",
        "Renew the certificate in the Secret; the new one is published immediately.",
    ),
    Code(
        "AIX0303",
        "HostNotCovered",
        "The certificate does not cover a host that it is served for",
        f"{WARNED} Clients reject it for that host.",
        "Issue a certificate that covers the host, or remove the host.",
    ),
    Code(
        "AIX0304",
        "NoHosts",
        "The hosts of a certificate cannot be determined",
        KEPT,
        "Add `tls.hosts`.",
    ),
    Code(
        "AIX0305",
        "SecretNotNamed",
        "A tls entry of an Ingress has no `secretName`",
        f"{WARNED} The entry has no effect.",
        "Add `secretName`, or remove the entry.",
    ),
    Code(
        "AIX0306",
        "InvalidSecret",
        "A Secret lacks a value or contains an invalid one",
        KEPT,
        "Put the value that the message names into the Secret.",
    ),
    Code(
        "AIX0307",
        "NoCredentials",
        "An ApisixConsumer has no credentials",
        f"{WARNED} No request can authenticate as this consumer.",
        "Add `spec.authParameter`.",
    ),
    Code(
        "AIX0308",
        "CredentialsTwice",
        "An ApisixConsumer has several credentials",
        f"{WARNED} Only the first is used.",
        "Remove all but one; create a consumer for each.",
    ),
    Code(
        "AIX0309",
        "JwtKeyMissing",
        "A JWT credential lacks the key that its algorithm requires",
        f"{WARNED} Current gateways reject the consumer.",
        "Add `secret` for HS algorithms, `public_key` for the others.",
    ),
    Code(
        "AIX0310",
        "NotAnAuthority",
        "The certificate that client certificates are verified with is not that of a CA",
        f"{FALSE} No client certificate is accepted.",
        "Put the certificate of the CA that issues the client certificates under `ca.crt`.",
    ),
)
