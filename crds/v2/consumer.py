"""ApisixConsumer: the credentials of a client. Values here are secrets: never log a model of it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, StrictBool, StrictInt

from crds.v2.common import Name, Plugin, Rule, RuledPart, SecretName, Spec, SpecPart

SHARED_KEY_ALGORITHMS = frozenset({"", "HS256", "HS384", "HS512"})


class BasicAuthValue(SpecPart):
    """Credentials of basicAuth."""

    username: Name = Field(description="User name.")
    password: Name = Field(description="Password.", repr=False)


class KeyAuthValue(SpecPart):
    """Credentials of keyAuth."""

    key: Name = Field(description="The key.", repr=False)


class JwtAuthValue(RuledPart):
    """Credentials of jwtAuth; absent fields use the gateway's default."""

    key: Name = Field(description="Identifies the consumer in the token.")
    secret: str = Field(default="", description="Shared secret.", repr=False)
    public_key: str = Field(default="", alias="public_key", description="Public key (PEM).")
    private_key: str = Field(default="", alias="private_key", description="Private key (PEM).", repr=False)
    algorithm: str = Field(default="", description="Signature algorithm (default HS256).")
    exp: StrictInt | None = Field(default=None, description="Lifetime of a token in seconds (default 86400).")
    base64_secret: StrictBool = Field(
        default=False, alias="base64_secret", description="Whether secret is encoded in base64."
    )
    lifetime_grace_period: StrictInt = Field(
        default=0, alias="lifetime_grace_period", description="Tolerated clock difference in seconds."
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "this algorithm needs public_key or private_key; only HS256, HS384 and HS512 work with secret",
            lambda v: v.algorithm in SHARED_KEY_ALGORITHMS or bool(v.public_key or v.private_key),
            "!has(self.algorithm) || self.algorithm in ['', 'HS256', 'HS384', 'HS512']"
            " || (has(self.public_key) && size(self.public_key) > 0)"
            " || (has(self.private_key) && size(self.private_key) > 0)",
            "algorithm",
        ),
    )


class WolfRbacValue(SpecPart):
    """Settings of wolfRBAC."""

    server: str = Field(default="", description="Address of the wolf server.")
    appid: str = Field(default="", description="Application id.")
    header_prefix: str = Field(default="", alias="header_prefix", description="Prefix of the added headers.")


class HmacAuthValue(RuledPart):
    """Credentials of hmacAuth; absent fields use the gateway's default."""

    access_key: str = Field(
        default="", alias="access_key", description="Identifier. New versions of APISIX call it key_id."
    )
    key_id: str = Field(default="", alias="key_id", description="Identifier.")
    secret_key: Name = Field(alias="secret_key", description="Shared secret.", repr=False)
    algorithm: str = Field(default="", description="Algorithm, such as hmac-sha256.")
    clock_skew: StrictInt | None = Field(
        default=None, alias="clock_skew", description="Tolerated clock difference in seconds."
    )
    signed_headers: tuple[str, ...] = Field(
        default=(), alias="signed_headers", description="Headers that the signature covers."
    )
    keep_headers: StrictBool | None = Field(
        default=None, alias="keep_headers", description="Whether the backend receives the signature."
    )
    encode_uri_params: StrictBool | None = Field(
        default=None, alias="encode_uri_params", description="Whether parameters are signed in their encoded form."
    )
    validate_request_body: StrictBool | None = Field(
        default=None, alias="validate_request_body", description="Whether the signature covers the body."
    )
    max_req_body: StrictInt | None = Field(
        default=None, alias="max_req_body", description="Maximum size of a verified body, in bytes."
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "key_id is missing: set key_id or, as older gateways call it, access_key",
            lambda v: bool(v.key_id or v.access_key),
            "(has(self.key_id) && size(self.key_id) > 0) || (has(self.access_key) && size(self.access_key) > 0)",
        ),
    )


class LdapAuthValue(SpecPart):
    """Identity of ldapAuth."""

    user_dn: Name = Field(alias="user_dn", description="Distinguished name of the user.")


def _has_source(credential: Any) -> bool:
    return credential.value is not None or credential.secret_name != ""


class Credential(RuledPart):
    """The source of credentials: `value`, or the Secret `secret_name`."""

    secret_ref: SecretName | None = Field(default=None, description="Secret in the same namespace that contains them.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "value or secretRef is required: set the credentials, or the name of a Secret that contains them",
            _has_source,
            "has(self.value) || (has(self.secretRef) && has(self.secretRef.name) && size(self.secretRef.name) > 0)",
        ),
    )

    @property
    def secret_name(self) -> str:
        """Name of the Secret; empty if there is none."""
        return self.secret_ref.name if self.secret_ref is not None else ""


class BasicAuth(Credential):
    """A user name and a password."""

    value: BasicAuthValue | None = Field(default=None, description="The credentials themselves.")


class KeyAuth(Credential):
    """A key."""

    value: KeyAuthValue | None = Field(default=None, description="The credentials themselves.")


class JwtAuth(Credential):
    """A key for tokens."""

    value: JwtAuthValue | None = Field(default=None, description="The credentials themselves.")


class WolfRbac(Credential):
    """An application of a wolf server."""

    value: WolfRbacValue | None = Field(default=None, description="The settings themselves.")


class HmacAuth(Credential):
    """A key for signatures."""

    value: HmacAuthValue | None = Field(default=None, description="The credentials themselves.")


class LdapAuth(Credential):
    """A user of a directory."""

    value: LdapAuthValue | None = Field(default=None, description="The identity itself.")


class AuthParameter(SpecPart):
    """The credentials. If there are several, the first one is used, in the order of the fields."""

    key_auth: KeyAuth | None = Field(default=None, description="A key.")
    basic_auth: BasicAuth | None = Field(default=None, description="A user name and a password.")
    jwt_auth: JwtAuth | None = Field(default=None, description="A key for tokens.")
    wolf_rbac: WolfRbac | None = Field(default=None, alias="wolfRBAC", description="An application of a wolf server.")
    hmac_auth: HmacAuth | None = Field(default=None, description="A key for signatures.")
    ldap_auth: LdapAuth | None = Field(default=None, description="A user of a directory.")


class ApisixConsumerSpec(Spec):
    """The credentials and plugins of a consumer."""

    is_consumer: ClassVar[bool] = True

    auth_parameter: AuthParameter | None = Field(default=None, description="Credentials.")
    group: str = Field(default="", description="ApisixConsumerGroup in the same namespace.")
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins for requests of the consumer.")
