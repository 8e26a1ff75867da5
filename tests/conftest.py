"""What holds for every test here: nothing that is printed or logged shows a secret."""

from tests.canary import pytest_runtest_makereport as pytest_runtest_makereport
