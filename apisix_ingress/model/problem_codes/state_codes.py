"""Codes 11: states of records, endpoints, certificates and gateways, which the status page lists as problems."""

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
    Code(
        "AIX1106",
        "Outage",
        "A gateway cluster cannot be written to",
        "Writes to it pause, and changes wait. If the gateway still runs, it serves its last records.",
        "Start the gateway, or correct `clusters[].admin_url`, its admin key or the network between them. Writes resume"
        " automatically.",
    ),
    Code(
        "AIX1107",
        "Undelivered",
        "A gateway cluster does not have the current version of a record",
        "Other clusters have it. The cluster that does not respond serves an earlier version, or none.",
        "Correct what the problem of the gateway cluster names.",
    ),
    Code(
        "AIX1108",
        "NotUpToDate",
        "Objects cannot be read",
        "Changes of these objects since then have no effect; their last version stays in the gateways.",
        "Correct what the message names: a permission, a CRD, the connection to the API server, or a file.",
    ),
    Code(
        "AIX1109",
        "AuditFailed",
        "The comparison with a gateway cluster failed",
        "Changes of other clients in the gateway are not found until a comparison succeeds.",
        "Correct what the gateway's error names. The comparison is repeated automatically.",
    ),
    Code(
        "AIX1110",
        "AdminKeyRejected",
        "A gateway cluster rejects the admin key of this replica",
        "If this replica becomes the leader, it cannot write to the cluster.",
        "Use the key of the gateway in `clusters[].admin_key`, or in the Secret that the replica mounts.",
    ),
    Code(
        "AIX1111",
        "DeletesHeldBack",
        "Unusually many deletes are held back",
        "The records stay in the gateway.",
        "Check that the objects were deleted on purpose; then delete the records through the Admin API.",
    ),
)
