"""The review of plugins that route, rewrite, limit, cache and compress."""

from collections.abc import Mapping

from translation.plugins.policy import redis
from translation.plugins.policy.model import Plugin, allow, refuse

_RECORD = "refers to a record of the gateway, which may belong to another team"
_DISCOVERY = "uses the gateway's service discovery, which does not distinguish teams"
_KEY = "contains a private key, which is only checked in a Secret; use an ApisixUpstream with tlsSecret"
_PARSES = "parses the bodies of requests in exponential time: a small body occupies a gateway"
_QUOTA = f"""
    {redis.PLAIN} {redis.SENTINEL_PLAIN} policy count time_window window_type key key_type rejected_code rejected_msg
    allow_degradation show_limit_quota_header sync_interval rules[].{{count,time_window,key,header_prefix}}"""

_UPSTREAM = "rules[].weighted_upstreams[].upstream"
_PROBES = "starts a further probe every second, even if a server never ends the earlier ones; use an ApisixUpstream"

ROUTING: Mapping[str, Plugin] = {
    "traffic-split": allow(
        "Sends a share of the requests to other addresses; records of the gateway are not permitted.",
        plain=f"""
            rules[].weighted_upstreams[].weight
            {_UPSTREAM}.{{name,desc,type,scheme,key,hash_on,pass_host,upstream_host,retries,retry_timeout}}
            {_UPSTREAM}.timeout.{{connect,send,read}} {_UPSTREAM}.keepalive_pool.{{size,idle_timeout,requests}}
            {_UPSTREAM}.tls.verify {_UPSTREAM}.labels.*
            {_UPSTREAM}.nodes[].{{port,weight,priority}}""",
        free=f"rules[].match[].vars {_UPSTREAM}.nodes[].metadata",
        host=f"{_UPSTREAM}.nodes[].host",
        hosts=f"{_UPSTREAM}.nodes",
        refused={
            "rules[].weighted_upstreams[].upstream_id": _RECORD,
            f"{_UPSTREAM}.id": _RECORD,
            f"{_UPSTREAM}.checks": _PROBES,
            f"{_UPSTREAM}.tls.client_cert_id": _RECORD,
            f"{_UPSTREAM}.tls.{{client_cert,client_key}}": _KEY,
            f"{_UPSTREAM}.{{service_name,discovery_type}}": _DISCOVERY,
            f"{_UPSTREAM}.discovery_args.{{namespace_id,group_name}}": _DISCOVERY,
            f"{_UPSTREAM}.{{create_time,update_time}}": "is set by the gateway",
        },
    ),
    "traffic-label": allow(
        "Sets request headers conditionally.",
        plain="rules[].actions[].weight",
        free="rules[].match rules[].actions[].set_headers",
    ),
    "workflow": allow(
        "Runs other plugins conditionally; each is reviewed.", free="rules[].case", plugins="rules[].actions"
    ),
    "proxy-rewrite": allow(
        "Rewrites the request, but does not change its upstream. Its priority is fixed.",
        plain="""uri method host use_real_request_uri_unsafe
            headers.* headers.{set,add}.* headers.remove""",
        rewrites="regex_uri",
        older="scheme",
    ),
    "response-rewrite": allow(
        "Rewrites the response of the team's own route.",
        plain="""status_code body body_base64 max_resp_body_size headers.* headers.set.* headers.{add,remove}
            filters[].{regex,scope,replace,options}""",
        uncompressed="vars",
    ),
    "redirect": allow(
        "Responds with a redirect.", plain="http_to_https uri regex_uri ret_code encode_uri append_query_string"
    ),
    "fault-injection": allow(
        "Delays requests of the team's own route, or responds to them.",
        plain="delay.{duration,percentage} abort.{http_status,body,percentage} abort.headers.*",
        free="delay.vars abort.vars",
    ),
    "mocking": allow(
        "Responds to requests of the team's own route.",
        plain="delay response_status content_type response_example with_mock_header response_headers.*",
        refused={"response_schema": "generates a value whose size grows exponentially with the depth of the schema"},
    ),
    "degraphql": allow(
        "Turns a request into a GraphQL query.", plain="query variables operation_name max_req_body_size"
    ),
    "grpc-web": allow("Translates gRPC-Web.", plain="cors_allow_headers max_req_body_size"),
    "http-dubbo": refuse("converts bodies in quadratic time: one body occupies a gateway for minutes"),
    "gzip": allow("Compresses responses.", plain="types min_length comp_level http_version vary buffers.{number,size}"),
    "brotli": allow("Compresses responses.", plain="types min_length mode comp_level lgwin lgblock http_version vary"),
    "client-control": allow("Limits the size of request bodies.", plain="max_body_size"),
    "proxy-control": allow("Configures buffering of requests.", plain="request_buffering"),
    "proxy-buffering": allow("Configures buffering of responses.", plain="disable_proxy_buffering"),
    "request-id": allow(
        "Adds an id to requests.", plain="header_name algorithm include_in_response range_id.{length,char_set}"
    ),
    "real-ip": allow("Sets the client's address for the team's own route.", plain="source trusted_addresses recursive"),
    "data-mask": allow(
        "Masks requests in logs.",
        plain="max_body_size max_req_post_args request[].{type,action,body_format,regex,value}",
        selector="request[].name",
    ),
    "mqtt-proxy": allow("Reads the client id of MQTT.", plain="protocol_name protocol_level"),
    "limit-req": allow(
        "Limits the rate of requests. State is kept per route.",
        plain=f"{redis.PLAIN} policy rate burst key key_type rejected_code rejected_msg nodelay allow_degradation",
        refused=redis.REFUSED,
    ),
    "limit-conn": allow(
        "Limits concurrent requests. State is kept per route.",
        plain=f"""{redis.PLAIN} policy conn burst key key_type key_ttl default_conn_delay only_use_default_delay
            rejected_code rejected_msg allow_degradation rules[].{{key,conn,burst}}""",
        refused=redis.REFUSED,
    ),
    "limit-count": allow(
        "Limits the number of requests. State is kept per route or group.",
        plain=_QUOTA,
        shared="group",
        refused=redis.SENTINEL_REFUSED,
    ),
    "graphql-limit-count": refuse(_PARSES),
    "proxy-cache": allow(
        "Caches responses in zones that all routes share.",
        plain="""cache_strategy cache_zone cache_bypass cache_method cache_http_status cache_control cache_set_cookie
            cache_ttl no_cache hide_cache_headers consumer_isolation max_resp_body_size""",
        cache_key="cache_key",
    ),
    "graphql-proxy-cache": refuse(_PARSES),
    "api-breaker": refuse("keeps its state by host and path for the routes of all teams; use passive health checks"),
    "grpc-transcode": refuse("reads Protobuf definitions by the id of a record, which may belong to another team"),
    "kafka-proxy": refuse(redis.REDIRECTING),
    "dubbo-proxy": refuse("requires a gateway built for it, and was not reviewed"),
    "echo": refuse("is an example of APISIX; use response-rewrite or mocking"),
    "example-plugin": refuse("is an example of APISIX"),
}
