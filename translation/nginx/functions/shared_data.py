"""Data that the functions of many routes read from one record, so that a change of it is one write."""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from translation.nginx.functions.attached import FIELD

NOTHING = "return function(conf, ctx) end\n"
"""The function of a plugin config with data, which no route runs: the plugin needs one."""

SHARED_DATA = f"""local function shared_data(reference)
    local found = require("apisix.plugin_config").get(reference.plugin_config_id)
    local plugin = found and found.value and found.value.plugins["serverless-pre-function"]
    return plugin and plugin.{FIELD}
end
"""
"""Reads the data of a plugin config by its id, which is nil if the gateway does not have it."""


def data_plugins(values: JsonObject) -> dict[str, JsonObject]:
    """Return the plugins of a plugin config with data."""
    return {"serverless-pre-function": {"phase": "access", "functions": [NOTHING], FIELD: values}}
