"""Codes 11: states of records, endpoints and certificates, which the status page lists as problems."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import GATEWAY, Code

_SERVED = "The object is published."

STATE_CODES = (
    Code(
        "AIX1101",
        "Rejected",
        "A gateway rejects a record",
        f"{GATEWAY} An earlier version of a route keeps serving; without one, its requests get the response 503.",
        "Correct what the gateway's error names. A plugin that it does not know must be enabled in its `config.yaml`.",
    ),
    Code(
        "AIX1102",
        "Blocked",
        "A record waits for another one",
        "The record is not written until the other one is; an earlier version keeps serving.",
        "Correct the object of the other record, which the message names.",
    ),
    Code(
        "AIX1103",
        "NoEndpoints",
        "No endpoint is ready",
        f"{_SERVED} Its requests get the response 503.",
        "Check that Pods of the Service exist and are ready: `kubectl get endpointslices`.",
    ),
    Code(
        "AIX1104",
        "CertificateExpiry",
        "A certificate has expired, expires soon or is not valid yet",
        f"{_SERVED} Clients reject a certificate outside its period of validity.",
        "Renew the certificate in the Secret. cert-manager does so automatically.",
    ),
    Code(
        "AIX1105",
        "HostClosed",
        "Every request for a host gets an error",
        f"{_SERVED} The gateway responds itself to every request for the host.",
        "Look at the plugin that the message names: `fault-injection`, or a protection that cannot be provided. "
        "`apisix-ingress explain URL` shows the route.",
    ),
)
