"""The review of plugins that log, trace and measure."""

from collections.abc import Mapping

from translation.plugins.policy.model import Plugin, allow, refuse

_BATCH = "name max_retry_count retry_delay buffer_duration inactive_timeout batch_max_size"
_BODIES = "include_req_body include_resp_body max_req_body_bytes max_resp_body_bytes"
_KEEPALIVE = "timeout keepalive keepalive_timeout keepalive_pool"
_FORMAT = "log_format log_format_extra"
_LOG, _DECODED = f"{_FORMAT} include_req_body_expr", "include_resp_body_expr"
_METADATA = "Sends logs to the address in the plugin metadata, which administrators set."
_BROKERS = "connects to brokers that can redirect it to other addresses, which are not checked"

OBSERVING: Mapping[str, Plugin] = {
    "http-logger": allow(
        "Sends logs by HTTP.",
        plain=f"{_BATCH} {_BODIES} timeout ssl_verify auth_header concat_method",
        free=_LOG,
        uncompressed=_DECODED,
        url="uri",
    ),
    "tcp-logger": allow(
        "Sends logs by TCP.",
        plain=f"{_BATCH} {_BODIES} timeout port tls tls_options",
        free=_LOG,
        uncompressed=_DECODED,
        host="host",
    ),
    "udp-logger": allow(
        "Sends logs by UDP.", plain=f"{_BATCH} {_BODIES} timeout port", free=_LOG, uncompressed=_DECODED, host="host"
    ),
    "syslog": allow(
        "Sends logs to a syslog server.",
        plain=f"{_BATCH} {_BODIES} timeout port tls sock_type flush_limit drop_limit pool_size",
        free=_LOG,
        uncompressed=_DECODED,
        host="host",
    ),
    "loki-logger": allow(
        "Sends logs to Loki.",
        plain=f"{_BATCH} {_BODIES} {_KEEPALIVE} ssl_verify tenant_id headers.* log_labels.*",
        free=_LOG,
        uncompressed=_DECODED,
        url="endpoint_addrs",
        path="endpoint_uri",
    ),
    "elasticsearch-logger": allow(
        "Sends logs to Elasticsearch.",
        plain=f"{_BATCH} {_BODIES} timeout ssl_verify field.index auth.{{username,password}} headers.*",
        free=_LOG,
        uncompressed=_DECODED,
        url="endpoint_addr endpoint_addrs",
        older="field.type",
    ),
    "clickhouse-logger": allow(
        "Sends logs to ClickHouse.",
        plain=f"{_BATCH} {_BODIES} timeout ssl_verify user password database logtable",
        free=_LOG,
        uncompressed=_DECODED,
        url="endpoint_addr endpoint_addrs",
    ),
    "splunk-hec-logging": allow(
        "Sends logs to Splunk.",
        plain=f"{_BATCH} ssl_verify endpoint.{{token,channel,timeout,keepalive_timeout}}",
        free=_FORMAT,
        url="endpoint.uri",
    ),
    "skywalking-logger": allow(
        "Sends logs to SkyWalking.",
        plain=f"{_BATCH} {_BODIES} timeout service_name service_instance_name",
        free=_LOG,
        uncompressed=_DECODED,
        url="endpoint_addr",
    ),
    "sls-logger": allow(
        "Sends logs to Alibaba Cloud.",
        plain=f"{_BATCH} {_BODIES} timeout port ssl_verify project logstore access_key_id access_key_secret",
        free=_LOG,
        uncompressed=_DECODED,
        host="host",
    ),
    "tencent-cloud-cls": allow(
        "Sends logs to Tencent Cloud.",
        plain=f"{_BATCH} {_BODIES} ssl_verify scheme cls_topic secret_id secret_key sample_ratio",
        free=f"{_LOG} global_tag",
        uncompressed=_DECODED,
        host="cls_host",
    ),
    "google-cloud-logging": allow(
        "Sends logs to Google Cloud.",
        plain=f"""{_BATCH} ssl_verify log_id resource.type
            auth_config.{{client_email,private_key,project_id,scope,scopes}}""",
        free=f"{_FORMAT} resource.labels",
        url="auth_config.{token_uri,entries_uri}",
        refused={"auth_file": "names a file of the gateway"},
    ),
    "lago": allow(
        "Sends usage to Lago.",
        plain=f"""{_BATCH} {_KEEPALIVE} ssl_verify token event_{{transaction_id,subscription_id,code}}
            event_properties.*""",
        url="endpoint_addrs",
        path="endpoint_uri",
    ),
    "loggly": allow(
        _METADATA,
        plain=f"{_BATCH} {_BODIES} ssl_verify severity severity_map.* tags",
        free=_LOG,
        uncompressed=_DECODED,
        word="customer_token",
    ),
    "datadog": allow(_METADATA, plain=f"{_BATCH} prefer_name include_path include_method constant_tags"),
    "zipkin": allow(
        "Sends traces to Zipkin.",
        plain="sample_ratio service_name server_addr span_version",
        url="endpoint",
    ),
    "opentelemetry": allow(
        _METADATA,
        plain="""sampler.name sampler.options.{fraction,root.name,root.options.fraction}
            additional_attributes additional_header_prefix_attributes""",
    ),
    "skywalking": allow("Sends to the address in the gateway's configuration.", plain="sample_ratio"),
    "prometheus": allow("Counts requests.", plain="prefer_name"),
    "kafka-logger": refuse(_BROKERS),
    "rocketmq-logger": refuse(_BROKERS),
    "error-log-logger": refuse("sends the log of the whole gateway"),
    "log-rotate": refuse("modifies files of the gateway"),
    "node-status": refuse("exposes information about the whole gateway"),
    "server-info": refuse("exposes information about the whole gateway"),
}
