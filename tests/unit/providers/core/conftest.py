"""The providers of tests that bring none of their own."""

from tests.unit.providers.core.providing import loop as loop
