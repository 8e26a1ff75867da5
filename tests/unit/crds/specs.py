"""Small valid specs for tests to modify."""

from typing import Any


def http_rule(**changes: Any) -> dict[str, Any]:
    rule = {"name": "rule1", "match": {"paths": ["/*"]}, "backends": [{"serviceName": "web", "servicePort": 80}]}
    return {**rule, **changes}


def route(**changes: Any) -> dict[str, Any]:
    """An ApisixRoute spec with one HTTP rule; the changes are the rule's."""
    return {"http": [http_rule(**changes)]}


def stream_rule(**changes: Any) -> dict[str, Any]:
    rule = {
        "name": "tcp",
        "protocol": "TCP",
        "match": {"ingressPort": 9100},
        "backend": {"serviceName": "web", "servicePort": 80},
    }
    return {**rule, **changes}


def expression(**changes: Any) -> dict[str, Any]:
    return {"subject": {"scope": "Query", "name": "id"}, "op": "Equal", "value": "13", **changes}


def route_when(*expressions: dict[str, Any]) -> dict[str, Any]:
    """An ApisixRoute spec with one HTTP rule under these conditions."""
    return route(match={"paths": ["/*"], "exprs": list(expressions)})


def active_check(**changes: Any) -> dict[str, Any]:
    """An ApisixUpstream spec with an active health check."""
    return {"healthCheck": {"active": {"type": "http", "httpPath": "/h", "healthy": {"interval": "1s"}, **changes}}}


SECRET = {"name": "cert", "namespace": "default"}
