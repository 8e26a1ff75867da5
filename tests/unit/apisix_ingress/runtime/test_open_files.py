"""The limit of open files."""

import resource

import pytest

from apisix_ingress.runtime.open_files import MOST, raise_limit


@pytest.mark.parametrize(
    ("limits", "want"),
    [
        ((1024, 4096), 4096),
        ((1024, 2**20), MOST),
        ((1024, resource.RLIM_INFINITY), MOST),
        ((4096, 4096), 4096),
        ((2**20, 2**20), 2**20),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), resource.RLIM_INFINITY),
    ],
)
def test_the_soft_limit_becomes_the_hard_one(
    limits: tuple[int, int], want: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [limits]
    monkeypatch.setattr(resource, "getrlimit", lambda _: found[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: found.append(new))
    assert raise_limit() == want
    assert found[-1] == (want, limits[1])


def test_a_refusal_is_lived_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_limit() == 1024
