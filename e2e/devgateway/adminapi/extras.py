"""The parts of the Admin API that change no record: schemas, the plugin list, validation without a write."""

from __future__ import annotations

from typing import Any

from e2e.devgateway.adminapi.record_kinds import RESOURCES, Refused
from e2e.devgateway.adminapi.replies import Answer, json_answer, text_answer
from e2e.devgateway.adminapi.writes import MISSING, InternalError
from e2e.devgateway.references import References
from e2e.devgateway.schemas import record_schemas as schemas
from e2e.devgateway.schemas.plugin_names import HTTP_PLUGINS, STREAM_PLUGINS
from e2e.devgateway.schemas.record_checks import check_metadata, check_record, check_secret
from e2e.devgateway.schemas.validator import check

NOT_FOUND = "plugin not found in subsystem http"


class Extras:
    """Handles requests for schemas, plugins and validation."""

    def __init__(self, references: References) -> None:
        self._references = references

    def schema(self, path: list[str], query: dict[str, str]) -> Answer:
        """Return a record's or a plugin's schema."""
        if path[:1] == ["plugins"] and len(path) > 1:
            plugin = HTTP_PLUGINS.get(path[1])
            if plugin is None:
                return json_answer(404, {"error_msg": NOT_FOUND})
            if query.get("schema_type") == "consumer" and plugin.consumer is not None:
                return json_answer(200, {**plugin.consumer, "encrypt_fields": plugin.consumer_secret})
            return json_answer(200, plugin.schema)
        name = path[0] if path else ""
        if name not in schemas.MAIN:
            return json_answer(400, {"error_msg": f"not found schema: {name}"})
        return json_answer(200, schemas.MAIN[name])

    def plugins(self, method: str, path: list[str], query: dict[str, str]) -> Answer:
        """Return the names or schemas of all plugins, or the schema of one plugin; `reload` does nothing."""
        if path == ["reload"]:
            if method == "PUT":
                return text_answer(200, "done")
            text = f"please use PUT method to reload the plugins, {method} method is not allowed."
            return json_answer(405, {"error_msg": text})
        if method != "GET":
            return json_answer(404, {"error_msg": "not found"})
        subsystem = query.get("subsystem", "http")
        if subsystem not in ("http", "stream"):
            return text_answer(400, "invalid subsystem passed")
        known = HTTP_PLUGINS if subsystem == "http" else STREAM_PLUGINS
        if path == ["list"]:
            return json_answer(200, list(known))
        if not path and query.get("all") == "true":
            return json_answer(200, {name: plugin.as_json() for name, plugin in known.items()})
        plugin = known.get(path[0]) if path else None
        if plugin is None:
            return json_answer(404, {"error_msg": f"plugin not found in subsystem {subsystem}"})
        return json_answer(200, plugin.schema)

    def validate_one(self, name: str, conf: Any) -> Answer:
        """Validate one record against its JSON schema only."""
        resource = RESOURCES.get(name)
        if resource is None:
            return json_answer(404, {"error_msg": f"Unsupported resource type: {name}"})
        if conf is MISSING:
            return json_answer(400, {"error_msg": "missing configurations"})
        error = check(resource.schema, conf)
        return text_answer(200, "") if error is None else json_answer(400, {"error_msg": error})

    async def validate_all(self, document: Any) -> Answer:
        """Validate a whole document of records; report every error, without checking references to existing records."""
        if document is MISSING or not isinstance(document, dict):
            raise InternalError
        if errors := await self.errors_in(document):
            return json_answer(400, {"error_msg": "Configuration validation failed", "errors": errors})
        return json_answer(200, {})

    async def errors_in(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what is wrong with the records of a document, in the form of the response to a validation."""
        errors: list[dict[str, Any]] = []
        for name in sorted(RESOURCES.keys() & document.keys()):
            seen: set[str] = set()
            for index, conf in enumerate(document[name]):
                error = await self._error(name, conf, seen)
                if error is not None:
                    found = {"resource_type": name, "index": index, "error": error}
                    identity = conf.get("username" if name == "consumers" else "id")
                    errors.append(found | ({"resource_id": identity} if identity is not None else {}))
        return errors

    async def _error(self, kind: str, conf: dict[str, Any], seen: set[str]) -> str | None:
        identity = str(conf.get("username" if kind == "consumers" else "id", ""))
        known = identity in seen
        seen.add(identity)
        try:
            if kind == "secrets":
                check_secret(identity.split("/")[0], conf)
            elif kind == "plugin_metadata":
                check_metadata(identity, conf)
            else:
                # A consumer without a name is a credential.
                is_credential = kind == "consumers" and "username" not in conf
                await check_record(RESOURCES["credentials" if is_credential else kind], conf, None)
                self._references.check_exclusive(kind, identity, conf.get("plugins") or {})
        except Refused as error:
            return str(error)
        return f"found duplicate id {identity} in {kind}" if identity and known else None
