"""The review of plugins that log, trace and measure.

A batch of a log waits in a timer. A server that responds slowly, or a name server, keeps it for as long as it likes,
whatever the timeout is. A worker with 4,096 such timers runs no other one: it stops reading its configuration until it
is restarted (APISIX 3.18). Therefore tenants choose no server for logs.
"""

from collections.abc import Mapping

from translation.plugins.policy.model import Plugin, allow, refuse

_BATCH = "name max_retry_count retry_delay buffer_duration inactive_timeout"
_METADATA = "Sends logs to the address in the plugin metadata, which administrators set."
_BROKERS = "connects to brokers that can redirect it to other addresses, which are not checked"
_WAITS = "waits for a server, which can stop all timers of a gateway with 4,000 batches; use an ApisixGlobalRule"
_SMALL = {"batch_max_size": "starts a timer for every batch, and all teams share the timers"}
_BODIES = dict.fromkeys(
    ("include_resp_body", "include_resp_body_expr", "max_resp_body_bytes"),
    "decompresses responses in memory: 1 MB becomes 1 GB",
)

OBSERVING: Mapping[str, Plugin] = {
    "loggly": allow(
        _METADATA,
        _SMALL | _BODIES,
        plain=f"{_BATCH} include_req_body max_req_body_bytes ssl_verify severity severity_map.* tags",
        free="log_format log_format_extra include_req_body_expr",
        word="customer_token",
    ),
    "datadog": allow(_METADATA, _SMALL, plain=f"{_BATCH} prefer_name include_path include_method constant_tags"),
    "opentelemetry": allow(
        _METADATA,
        plain="""sampler.name sampler.options.{fraction,root.name,root.options.fraction}
            additional_attributes additional_header_prefix_attributes""",
    ),
    "skywalking": allow("Sends to the address in the gateway's configuration.", plain="sample_ratio"),
    "prometheus": allow("Counts requests.", plain="prefer_name"),
    **dict.fromkeys(
        (
            "http-logger", "tcp-logger", "udp-logger", "syslog", "loki-logger", "elasticsearch-logger",
            "clickhouse-logger", "splunk-hec-logging", "skywalking-logger", "sls-logger", "tencent-cloud-cls",
            "google-cloud-logging", "lago", "zipkin",
        ),
        refuse(_WAITS),
    ),
    "kafka-logger": refuse(_BROKERS),
    "rocketmq-logger": refuse(_BROKERS),
    "error-log-logger": refuse("sends the log of the whole gateway"),
    "log-rotate": refuse("modifies files of the gateway"),
    "node-status": refuse("exposes information about the whole gateway"),
    "server-info": refuse("exposes information about the whole gateway"),
}  # fmt: skip
