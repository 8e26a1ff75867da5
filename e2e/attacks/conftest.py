"""Fixtures of the attacks."""

from e2e.attacks.installation import installation, own, tenants, tenants_of_own

__all__ = ["installation", "own", "tenants", "tenants_of_own"]
