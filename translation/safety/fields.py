"""What a gateway does with each text in the configuration of a plugin (APISIX 3.18).

A field is here with what its text may contain. Two kinds are checked in records: destinations, and paths that are
appended to one. The others are listed so that a field that a later version adds is noticed:
`tests/unit/translation/safety/test_fields.py` compares the table with the schemas of the plugins.

Paths are written as in `translation.plugins.notation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

Fields = Mapping["Use", str]
"""Use → paths, separated by spaces."""


class Use(Enum):
    """What a gateway does with a text. None of them resolves variables twice, except `CAPTURES`."""

    DATA = "sends or compares it as it is"
    NAME = "looks something up by it: a variable, a header, a field, a zone, a method"
    TEMPLATE = "replaces variables in it once, and sends the result as data"
    CAPTURES = "replaces groups of a regular expression with parts of the path, and then variables in the result"
    PATTERN = "matches it as a regular expression, or as a list of addresses"
    CONDITION = "evaluates it as an expression; may contain regular expressions"
    CODE = "compiles it, or reads a file or runs a program with this name"
    REWRITE = "replaces the path of the request with it, after variables or groups were replaced"
    PATH = "appends it to a destination"
    URL = "connects to the host of this URL"
    HOST = "connects to this host, with or without a port"


def _of(**fields: str) -> Fields:
    return {Use[name.upper()]: paths for name, paths in fields.items()}


_CONDITIONS = "include_req_body_expr include_resp_body_expr"
_FORMAT = "log_format log_format_extra"
_LOG = f"{_FORMAT} name"
_REDIS = "policy redis_username redis_password redis_cluster_name redis_master_name redis_role sentinel_username"
_REDIS_HOSTS = "redis_host redis_cluster_nodes redis_sentinels[].host"
_COUNT = "rules[].{count,time_window,key}"
_UPSTREAM = "rules[].weighted_upstreams[].upstream"
_PROBE = "checks.active.{host,http_method,http_path,http_req_body,req_headers,type}"
_MODELS = """override.request_body.{anthropic-messages,bedrock-converse,openai-chat,openai-embeddings} provider
    override.request_body.{openai-responses,passthrough} auth.aws.{access_key_id,secret_access_key,session_token}
    auth.gcp.service_account_json auth.header.* auth.query.* options.model"""
_MANY_MODELS = " ".join(f"instances[].{path}" for path in _MODELS.split())
_OWN = "ingress_nginx.{mirror,external}.base"
"""Fields for the functions of this controller (`translation.nginx.functions`)."""

_OAUTH = "app_secret secret secret_fallbacks redirect_uri"

FIELDS: Mapping[str, Fields] = {
    "acl": _of(
        data="allow_labels.* deny_labels.* rejected_msg",
        pattern="external_user_label_field_separator",
        name="external_user_label_field external_user_label_field_key external_user_label_field_parser",
    ),
    "ai": {},
    "ai-aliyun-content-moderation": _of(
        data="""access_key_id access_key_secret deny_message fail_mode region_id request_check_{mode,roles,service}
            response_check_service risk_level_bar stream_check_mode""",
        url="endpoint",
    ),
    "ai-cache": _of(
        data="""bypass_on[].equals fail_mode layers policy redis_{password,username} semantic.distance_metric
            semantic.embedding.{azure_openai,openai}.api_key semantic.embedding.openai.model
            semantic.vector_search.redis.index""",
        name="bypass_on[].header cache_key.include_vars",
        host="redis_host",
        url="semantic.embedding.{azure_openai,openai}.endpoint",
    ),
    "ai-lakera-guard": _of(
        data="action api_key direction fail_mode project_id {request,response}_failure_message", url="lakera_endpoint"
    ),
    "ai-prompt-decorator": _of(data="{append,prepend}[].{content,role}"),
    "ai-prompt-guard": _of(data="fail_mode", pattern="allow_patterns deny_patterns"),
    "ai-prompt-template": _of(
        data="templates[].name templates[].template.model", code="templates[].template.messages[].{content,role}"
    ),
    "ai-proxy": _of(data=_MODELS, path="provider_conf.{region,project_id}", url="override.endpoint"),
    "ai-proxy-multi": _of(
        data=f"""{_MANY_MODELS} balancer.{{algorithm,hash_on}} fallback_strategy instances[].{{examples,name}}
            instances[].{_PROBE} semantic_opts.{{fallback,embeddings.model,embeddings.provider}}
            semantic_opts.embeddings.auth.{{header,query}}.*""",
        name="balancer.key",
        path="instances[].provider_conf.{region,project_id}",
        url="instances[].override.endpoint semantic_opts.embeddings.endpoint",
    ),
    "ai-rag": _of(
        data="{embeddings_provider.azure_openai,vector_search_provider.azure_ai_search}.api_key",
        url="{embeddings_provider.azure_openai,vector_search_provider.azure_ai_search}.endpoint",
    ),
    "ai-rate-limiting": _of(
        data=f"{_REDIS} sentinel_password limit_strategy rejected_msg instances[].name rules[].header_prefix",
        template=f"limit time_window instances[].{{limit,time_window}} {_COUNT}",
        code="cost_expr",
        host=_REDIS_HOSTS,
    ),
    "ai-request-rewrite": _of(data="auth.{header,query}.* options.model prompt provider", url="override.endpoint"),
    "api-breaker": _of(
        data="break_response_body break_response_headers[].key", template="break_response_headers[].value"
    ),
    "attach-consumer-label": _of(name="headers.*"),
    "authz-casbin": _of(data="username", code="model model_path policy policy_path"),
    "authz-casdoor": _of(data="callback_url client_id client_secret", url="endpoint_addr"),
    "authz-keycloak": _of(
        data="""access_denied_redirect_uri client_id client_secret grant_type permissions policy_enforcement_mode
            password_grant_token_generation_incoming_uri lazy_load_paths""",
        url="discovery resource_registration_endpoint token_endpoint",
    ),
    "aws-lambda": _of(
        data="authorization.apikey authorization.iam.{accesskey,aws_region,secretkey,service}", url="function_uri"
    ),
    "azure-functions": _of(data="authorization.{apikey,clientid}", url="function_uri"),
    "basic-auth": _of(data="password realm username", name="anonymous_consumer"),
    "batch-requests": {},
    "body-transformer": _of(data="{request,response}.input_format", code="{request,response}.template"),
    "brotli": _of(data="types http_version"),
    "cas-auth": _of(data="cas_callback_uri cookie.{samesite,secret} logout_uri", url="idp_uri"),
    "chaitin-waf": _of(data="mode", condition="match[].vars"),
    "clickhouse-logger": _of(
        data="database logtable password user name",
        template=_FORMAT,
        condition=_CONDITIONS,
        url="endpoint_addr endpoint_addrs",
    ),
    "client-control": {},
    "consumer-restriction": _of(
        data="allowed_by_methods[].{methods,user} blacklist rejected_msg type whitelist",
    ),
    "cors": _of(
        data="allow_headers allow_methods allow_origins expose_headers timing_allow_origins",
        name="allow_origins_by_metadata",
        pattern="allow_origins_by_regex timing_allow_origins_by_regex",
    ),
    "csrf": _of(data="key name"),
    "data-mask": _of(
        data="request[].{action,body_format,type,value}", name="request[].name", pattern="request[].regex"
    ),
    "datadog": _of(data="constant_tags name"),
    "degraphql": _of(data="operation_name query", name="variables"),
    "dingtalk-auth": _of(data=f"{_OAUTH} app_key", name="code_header code_query", url="access_token_url userinfo_url"),
    "echo": _of(data="after_body before_body body headers"),
    "elasticsearch-logger": _of(
        data="auth.{password,username} headers.* name",
        template=f"{_FORMAT} field.index",
        condition=_CONDITIONS,
        url="endpoint_addr endpoint_addrs",
    ),
    "example-plugin": _of(data="s t", host="ip"),
    "ext-plugin-post-req": _of(code="conf[].{name,value}"),
    "ext-plugin-post-resp": _of(code="conf[].{name,value}"),
    "ext-plugin-pre-req": _of(code="conf[].{name,value}"),
    "fault-injection": _of(template="abort.body abort.headers.*", condition="abort.vars delay.vars"),
    "feishu-auth": _of(
        data=f"{_OAUTH} app_id auth_redirect_uri", name="code_header code_query", url="access_token_url userinfo_url"
    ),
    "file-logger": _of(template=_FORMAT, condition=f"{_CONDITIONS} match", code="path"),
    "forward-auth": _of(
        data="request_method",
        name="client_headers request_headers upstream_headers",
        template="extra_headers.*",
        url="uri",
    ),
    "google-cloud-logging": _of(
        data="""auth_config.{client_email,private_key,project_id,scope,scopes} log_id name resource.labels
            resource.type""",
        template=_FORMAT,
        code="auth_file",
        url="auth_config.{entries_uri,token_uri}",
    ),
    "graphql-limit-count": _of(
        data=f"""{_REDIS} sentinel_password group key_type rejected_msg rules[].header_prefix window_type
            cost_strategy introspection_headers.*""",
        template=f"count key time_window {_COUNT}",
        host=_REDIS_HOSTS,
        url="introspection_endpoint",
    ),
    "graphql-proxy-cache": _of(data="cache_strategy", name="cache_zone"),
    "grpc-transcode": _of(data="pb_option", name="method proto_id service status_detail_type"),
    "grpc-web": _of(data="cors_allow_headers"),
    "gzip": _of(data="http_version types"),
    "hmac-auth": _of(data="allowed_algorithms key_id realm secret_key", name="anonymous_consumer signed_headers"),
    "http-dubbo": _of(data="method params_type_desc service_name service_version", name="serialization_header_key"),
    "http-logger": _of(data="auth_header concat_method name", template=_FORMAT, condition=_CONDITIONS, url="uri"),
    "inspect": {},
    "ip-restriction": _of(data="message", pattern="blacklist whitelist"),
    "jwe-decrypt": _of(data="key secret", name="forward_header header"),
    "jwt-auth": _of(
        data="algorithm key public_key realm secret claims_to_verify",
        name="anonymous_consumer cookie header key_claim_name query",
    ),
    "kafka-logger": _of(
        data="""brokers[].sasl_config.{mechanism,password,user} kafka_topic meta_format name producer_type""",
        name="key",
        template=_FORMAT,
        condition=_CONDITIONS,
        host="brokers[].host",
    ),
    "kafka-proxy": _of(data="sasl.{password,username}"),
    "key-auth": _of(data="key realm", name="anonymous_consumer header query"),
    "lago": _of(
        data="event_code name token",
        template="event_properties.* event_subscription_id event_transaction_id",
        path="endpoint_uri",
        url="endpoint_addrs",
    ),
    "ldap-auth": _of(data="base_dn realm uid user_dn", host="ldap_uri"),
    "ldap-auth-advanced": _of(
        data="attribute base_dn bind_dn header_type ldap_password realm user_dn",
        name="keepalive_pool_name",
        host="ldap_uri",
    ),
    "limit-conn": _of(
        data="policy redis_username redis_password redis_cluster_name key_type rejected_msg",
        template="burst conn key rules[].{burst,conn,key}",
        host="redis_host redis_cluster_nodes",
    ),
    "limit-count": _of(
        data=f"{_REDIS} sentinel_password group key_type rejected_msg rules[].header_prefix window_type",
        template=f"count key time_window {_COUNT}",
        host=_REDIS_HOSTS,
    ),
    "limit-req": _of(
        data="policy redis_username redis_password redis_cluster_name key_type rejected_msg",
        template="key",
        host="redis_host redis_cluster_nodes",
    ),
    "loggly": _of(
        data="severity severity_map.* tags name", template=_FORMAT, condition=_CONDITIONS, path="customer_token"
    ),
    "loki-logger": _of(
        data="headers.* tenant_id name",
        template=f"{_FORMAT} log_labels.*",
        condition=_CONDITIONS,
        path="endpoint_uri",
        url="endpoint_addrs",
    ),
    "mcp-bridge": _of(data="base_uri", code="args command"),
    "mocking": _of(data="content_type response_schema", template="response_example response_headers.*"),
    "mqtt-proxy": _of(data="protocol_name"),
    "multi-auth": _of(name="auth_plugins"),
    "oas-validator": _of(data="spec_url_request_headers.*", code="spec", url="spec_url"),
    "opa": _of(name="send_headers_upstream", path="policy", url="host"),
    "openfunction": _of(data="authorization.service_token", url="function_uri"),
    "openid-connect": _of(
        data="""authorization_params cache_segment claim_validator.audience.claim
            claim_validator.issuer.valid_issuers client_id client_jwt_assertion_{alg,audience}
            client_rsa_private_key client_rsa_private_key_id client_secret
            dpop.{enabled,private_key,public_jwk,signing_alg} introspection_endpoint_auth_method
            introspection_expiry_claim logout_path par.endpoint_auth_method post_logout_redirect_uri
            proxy_opts.{http_proxy_authorization,https_proxy_authorization,no_proxy} public_key realm redirect_uri
            required_scopes scope session.cookie_{domain,name,path,same_site}
            session.redis.{password,prefix,server_name,username} session.{secret,storage} token_endpoint_auth_method
            token_signing_alg_values_expected unauth_action""",
        name="introspection_addon_headers",
        code="claim_schema",
        host="session.redis.host",
        url="discovery introspection_endpoint par.endpoint proxy_opts.{http_proxy,https_proxy}",
    ),
    "opentelemetry": _of(
        data="sampler.name sampler.options.root.name", name="additional_attributes additional_header_prefix_attributes"
    ),
    "openwhisk": _of(data="service_token", path="action namespace package", url="api_host"),
    "prometheus": {},
    "proxy-buffering": {},
    "proxy-cache": _of(
        data="cache_method cache_strategy", name="cache_zone", template="cache_bypass cache_key no_cache"
    ),
    "proxy-control": {},
    "proxy-mirror": _of(data="path_concat_mode", path="path", url="host"),
    "proxy-rewrite": _of(
        data="host method headers.remove",
        captures="headers.* headers.{add,set}.*",
        rewrite="uri regex_uri",
    ),
    "public-api": _of(data="uri"),
    "real-ip": _of(name="source", pattern="trusted_addresses"),
    "redirect": _of(template="uri", pattern="regex_uri"),
    "referer-restriction": _of(data="message", pattern="blacklist whitelist"),
    "request-id": _of(data="algorithm range_id.char_set", name="header_name"),
    "request-validation": _of(data="rejected_msg", code="body_schema header_schema"),
    "response-rewrite": _of(
        data="body filters[].{options,replace,scope} headers.remove",
        template="headers.* headers.add headers.set.*",
        pattern="filters[].regex",
        condition="vars",
    ),
    "rocketmq-logger": _of(
        data="access_key meta_format name secret_key tag topic",
        name="key",
        template=_FORMAT,
        condition=_CONDITIONS,
        host="nameserver_list",
    ),
    "saml-auth": _of(
        data="""auth_protocol_binding_method idp_cert idp_uri login_callback_uri logout_{callback,redirect}_uri
            logout_uri secret secret_fallbacks sp_cert sp_issuer sp_private_key""",
    ),
    "server-info": {},
    "serverless-post-function": _of(data="phase", code="functions", url=_OWN),
    "serverless-pre-function": _of(data="phase", code="functions", url=_OWN),
    "skywalking": {},
    "skywalking-logger": _of(
        data="service_instance_name service_name name", template=_FORMAT, condition=_CONDITIONS, url="endpoint_addr"
    ),
    "sls-logger": _of(
        data="access_key_id access_key_secret logstore name project",
        template=_FORMAT,
        condition=_CONDITIONS,
        host="host",
    ),
    "splunk-hec-logging": _of(data="endpoint.{channel,token} name", template=_FORMAT, url="endpoint.uri"),
    "syslog": _of(data="sock_type name", template=_FORMAT, condition=_CONDITIONS, host="host"),
    "tcp-logger": _of(data="tls_options name", template=_FORMAT, condition=_CONDITIONS, host="host"),
    "tencent-cloud-cls": _of(
        data="cls_topic global_tag name scheme secret_id secret_key",
        template=_FORMAT,
        condition=_CONDITIONS,
        host="cls_host",
    ),
    "traffic-label": _of(template="rules[].actions[].set_headers", condition="rules[].match"),
    "traffic-split": _of(
        data=f"""{_UPSTREAM}.{_PROBE} {_UPSTREAM}.checks.passive.type {_UPSTREAM}.{{desc,labels.*,name,pass_host,type}}
            {_UPSTREAM}.{{hash_on,scheme,upstream_host,nodes[].metadata,tls.client_cert,tls.client_key}}""",
        name=f"""{_UPSTREAM}.{{id,discovery_type,service_name,tls.client_cert_id}} {_UPSTREAM}_id
            {_UPSTREAM}.discovery_args.{{group_name,namespace_id}}""",
        template=f"{_UPSTREAM}.key",
        condition="rules[].match[].vars",
        host=f"{_UPSTREAM}.nodes[].host",
    ),
    "ua-restriction": _of(data="message", pattern="allowlist denylist"),
    "udp-logger": _of(data="name", template=_FORMAT, condition=_CONDITIONS, host="host"),
    "uri-blocker": _of(data="rejected_msg", pattern="block_rules"),
    "wolf-rbac": _of(data="appid header_prefix", url="server"),
    "workflow": _of(name="rules[].actions", condition="rules[].case"),
    "zipkin": _of(data="service_name server_addr span_version", url="endpoint"),
}
"""Every plugin with all its texts."""
