"""The review of plugins that authenticate, authorise and restrict."""

from collections.abc import Mapping

from translation.plugins.policy.model import FRAMES, READS, Plugin, allow, credentials, refuse

_DOCUMENT = "fetches a document with more addresses, which are not checked"
_SESSIONS = "keeps sessions that routes of other teams may accept"
_OAUTH = """
    secret secret_fallbacks app_secret redirect_uri cookie_expires_in set_userinfo_header code_header code_query timeout
    ssl_verify"""

ACCESS: Mapping[str, Plugin] = {
    "key-auth": credentials(
        "Requires the key of a consumer.",
        plain="key header query hide_credentials realm",
        consumer="anonymous_consumer",
    ),
    "basic-auth": credentials(
        "Requires the password of a consumer.",
        plain="username password hide_credentials realm",
        consumer="anonymous_consumer",
    ),
    "jwt-auth": credentials(
        "Requires a token of a consumer.",
        plain="""key secret algorithm exp base64_secret lifetime_grace_period public_key header query cookie
            hide_credentials key_claim_name store_in_ctx claims_to_verify realm""",
        consumer="anonymous_consumer",
        older="private_key",
    ),
    "hmac-auth": credentials(
        "Requires a signature of a consumer.",
        plain="""key_id secret_key allowed_algorithms clock_skew signed_headers validate_request_body
            max_req_body_size hide_credentials realm""",
        consumer="anonymous_consumer",
        older="access_key algorithm keep_headers encode_uri_params max_req_body",
    ),
    "jwe-decrypt": refuse("finds its secret by a key that a consumer of another team may also have; use jwt-auth"),
    "ldap-auth": credentials(
        "Checks passwords with an LDAP server.",
        plain="user_dn base_dn use_tls tls_verify uid hide_credentials realm",
        host="ldap_uri",
    ),
    "ldap-auth-advanced": refuse("shares connections by a name that other teams may also use"),
    "multi-auth": allow("Tries several authentication methods; each is reviewed.", plugins="auth_plugins"),
    "forward-auth": refuse(
        f"{READS}; use the filter ExternalAuth of an HTTPRoute or the annotation auth-url of ingress-nginx"
    ),
    "opa": refuse(FRAMES),
    "dingtalk-auth": allow(
        "Authenticates users with DingTalk.",
        plain=f"{_OAUTH} app_key",
        refused={"access_token_url userinfo_url": READS},
    ),
    "feishu-auth": allow(
        "Authenticates users with Feishu.",
        plain=f"{_OAUTH} app_id auth_redirect_uri",
        refused={"access_token_url userinfo_url": READS},
    ),
    "consumer-restriction": allow(
        "Restricts a route to certain consumers.",
        plain="type whitelist blacklist allowed_by_methods[].{user,methods} rejected_code rejected_msg",
    ),
    "acl": refuse("trusts labels of consumers, which every team chooses for its own; use consumer-restriction"),
    "attach-consumer-label": allow(
        "Sends labels of the consumer to the upstream. Every team chooses the labels of its own consumers.",
        plain="headers.*",
    ),
    "ip-restriction": allow(
        "Restricts a route to certain client addresses.", plain="whitelist blacklist message response_code"
    ),
    "ua-restriction": allow("Restricts a route by user agent.", plain="allowlist denylist message bypass_missing"),
    "referer-restriction": allow("Restricts a route by referrer.", plain="whitelist blacklist message bypass_missing"),
    "uri-blocker": allow("Rejects requests by path.", plain="block_rules rejected_code rejected_msg case_insensitive"),
    "csrf": allow("Protects against cross-site request forgery with a token.", plain="key expires name"),
    "cors": allow(
        "Responds to CORS requests of browsers.",
        plain="""allow_origins allow_methods allow_headers expose_headers max_age allow_credential
            allow_origins_by_regex allow_origins_by_metadata timing_allow_origins timing_allow_origins_by_regex""",
    ),
    "wolf-rbac": refuse(
        "sends requests to the server of a consumer that the client selects, even a consumer of another team"
    ),
    "authz-keycloak": refuse("stores client tokens where routes of other teams can read them"),
    "openid-connect": refuse(_DOCUMENT),
    "saml-auth": refuse(_SESSIONS),
    "cas-auth": refuse(_SESSIONS),
    "authz-casdoor": refuse(_SESSIONS),
    "authz-casbin": refuse("reads files of the gateway"),
    "chaitin-waf": refuse("sends requests to a firewall that only the plugin metadata configures"),
}
