"""Ingress: translated when it or anything it refers to changes."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.outcome import Outcome
from translation.nginx.classes import is_served
from translation.nginx.ingress import judge_ingress


class IngressProvider(Provider[CustomObject]):
    """Owns routes and the certificates of `spec.tls`; claims upstreams."""

    kind = "Ingress"

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Outcome:
        """Return the translation of an Ingress; for one of ingress-nginx only its problems: hosts own the records."""
        nginx = self._options.nginx
        if item is not None and nginx is not None and is_served(item, view, self._options, nginx):
            return judge_ingress(item, view, self._options, nginx)
        return super().evaluate(key, item, view)
