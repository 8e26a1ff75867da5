"""Codes 0606 to 0608: annotations of ingress-nginx."""

from __future__ import annotations

from apisix_ingress.model.problem_codes.code import Code

NGINX_CODES = (
    Code(
        "AIX0606",
        "NginxNotServed",
        "An Ingress for ingress-nginx, or some of its paths, cannot be served because of an annotation",
        "The Ingress, or its paths that the annotation concerns, are not served: they respond with 403, 404 or 503. "
        "Other Ingresses of the host are not affected.",
        "Correct the value or the object that it names, or replace the annotation as the message describes. "
        "The reference page `ingress-nginx` lists the support for every annotation.",
    ),
    Code(
        "AIX0607",
        "NginxDiffers",
        "An annotation of ingress-nginx is served with a difference",
        "The object is published. `lint`, `translate`, the log, the status page and an Event report the difference.",
        "Decide whether the difference in the message matters. "
        "The reference page `ingress-nginx` lists the support for every annotation.",
    ),
    Code(
        "AIX0608",
        "NginxNoEffect",
        "An annotation of ingress-nginx has no effect",
        "The object is published without it. `lint`, `translate`, the log, the status page and an Event report it.",
        "Correct the name of an unknown annotation. Otherwise follow the message: many of these settings belong to the "
        "whole gateway. Remove the annotation if it is not needed.",
    ),
)

ANNOUNCED = frozenset({"NginxDiffers", "NginxNoEffect"})
"""Warnings that an Event reports, because an Ingress has no conditions."""
