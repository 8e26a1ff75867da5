"""The status writer that every test here uses."""

from tests.flow.kube.status.harness import harness as harness
