"""Hosts of ingress-nginx: translated when an Ingress that names the host, or anything it refers to, changes."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from translation.core.result import Translation


class NginxHostProvider(Provider[CustomObject]):
    """Owns the routes and the certificate of each host that Ingresses of ingress-nginx name; claims upstreams.

    The owner is a host, not an object: all Ingresses of a host are translated together, and an edit of an Ingress
    affects only the hosts that it names.
    """

    kind = "NginxHost"

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Translation | None:
        """Return the records of a host, or None if no Ingress names it."""
        if self._options.nginx is None:
            return None
        from translation.nginx.host import translate_host

        return translate_host(key.name, view, self._options, self._options.nginx)

    def translate(self, item: CustomObject, view: View) -> Translation:
        """Never called: a host is not an object; `evaluate` finds its Ingresses by its name."""
        raise NotImplementedError
