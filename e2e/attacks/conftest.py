"""Fixtures of the attacks."""

from e2e.attacks.gateway_api import infra
from e2e.attacks.installation import installation, own, tenants, tenants_of_own

__all__ = ["infra", "installation", "own", "tenants", "tenants_of_own"]
