"""The default providers of tests."""

from tests.unit.providers.core.providing import loop as loop
