"""The review of plugins that send requests to functions, language models and copies of a backend."""

from collections.abc import Mapping

from translation.plugins.policy import redis
from translation.plugins.policy.model import FRAMES, READS, Plugin, allow, refuse

_STREAM = """
    timeout ssl_verify keepalive keepalive_timeout keepalive_pool max_req_body_size max_response_bytes
    max_stream_duration_ms streaming_flush_interval_ms logging.{payloads,summaries}"""
_PARSES = (
    "streams from a server whose responses a gateway parses in quadratic time: one of 8 MB occupies it for minutes"
)
_ACCOUNT = "uses the service account of the gateway, or one whose token server is not checked"


def _provider(at: str = "") -> dict[str, str]:
    """Return the harmless fields of one language model, by kind."""
    return {
        "plain": f"""{at}provider {at}auth.header.* {at}auth.query.*
            {at}auth.aws.{{access_key_id,secret_access_key,session_token}} {at}override.request_body_force_override""",
        "free": f"{at}options {at}override.llm_options {at}override.request_body",
        "word": f"{at}provider_conf.{{region,project_id}}",
    }


_ONE, _MANY = _provider(), _provider("instances[].")
_PROBES = "starts a further probe every second, even if the earlier ones have not ended"
_EMBEDDINGS = "semantic_opts.embeddings"

FUNCTIONS: Mapping[str, Plugin] = {
    "proxy-mirror": allow(
        "Sends a copy of each request to another address. Its priority is fixed.",
        plain="path_concat_mode sample_ratio",
        url="host",
        path="path",
    ),
    "aws-lambda": refuse(FRAMES),
    "openfunction": refuse(FRAMES),
    "openwhisk": refuse(FRAMES),
    "azure-functions": refuse("sends the master key of the plugin metadata to any address"),
    "ai-proxy": allow(
        "Sends requests to a language model.",
        plain=f"{_STREAM} {_ONE['plain']}",
        free=_ONE["free"],
        word=_ONE["word"],
        refused={"auth.gcp": _ACCOUNT, "override.endpoint": _PARSES},
    ),
    "ai-proxy-multi": allow(
        "Sends requests to several language models.",
        plain=f"""{_STREAM} {_MANY["plain"]} max_retries retry_on_failure_within_ms fallback_strategy
            balancer.{{algorithm,hash_on,key}} instances[].{{name,weight,priority,examples,threshold}}
            semantic_opts.{{fallback,debugging,threshold}} {_EMBEDDINGS}.{{provider,model,timeout,ssl_verify}}
            {_EMBEDDINGS}.auth.{{header,query}}.*""",
        free=_MANY["free"],
        word=_MANY["word"],
        refused={
            "instances[].auth.gcp": _ACCOUNT,
            "instances[].override.endpoint": _PARSES,
            "instances[].checks": _PROBES,
            f"{_EMBEDDINGS}.endpoint": READS,
        },
    ),
    "ai-request-rewrite": allow(
        "Rewrites requests with a language model.",
        plain="""prompt provider auth.header.* auth.query.* timeout ssl_verify keepalive keepalive_pool
            max_req_body_size""",
        free="options",
        refused={"override.endpoint": READS},
    ),
    "ai-rag": refuse(READS),
    "ai-lakera-guard": allow(
        "Checks prompts.",
        plain="""api_key project_id direction action deny_code fail_mode fail_open reveal_failure_categories
            request_failure_message response_failure_message timeout ssl_verify""",
        refused={"lakera_endpoint": READS},
    ),
    "ai-aliyun-content-moderation": refuse(READS),
    "ai-prompt-decorator": allow(
        "Adds text to prompts.", plain="prepend[].{role,content} append[].{role,content} max_req_body_size"
    ),
    "ai-prompt-guard": allow(
        "Checks prompts against patterns.",
        plain="""allow_patterns deny_patterns match_all_roles match_all_conversation_history fail_mode
            max_req_body_size""",
    ),
    "ai-rate-limiting": allow(
        "Limits tokens of language models. State is kept per route.",
        plain=f"""{redis.PLAIN} {redis.SENTINEL_PLAIN} policy limit limit_strategy time_window rejected_code
            rejected_msg allow_degradation show_limit_quota_header instances[].{{name,limit,time_window}}
            rules[].{{count,time_window,key,header_prefix}}""",
        code="cost_expr",
        refused=redis.SENTINEL_REFUSED,
    ),
    "ai-cache": refuse("stores responses where routes of other teams may find them"),
    "ai": refuse("affects the whole gateway"),
}
