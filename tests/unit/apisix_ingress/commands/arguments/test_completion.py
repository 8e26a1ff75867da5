"""Shell completion: the scripts, and the candidates that they request."""

from pathlib import Path

import pytest

from apisix_ingress.commands.app import MODULES, load, run_program
from apisix_ingress.commands.arguments.completion import SCRIPTS, answer, answer_kubectl, shell_of
from apisix_ingress.commands.common import completions
from apisix_ingress.errors import UsageError

BLOG = Path(__file__).parents[5] / "examples" / "quickstart"


def ask(words: str, index: int) -> list[str]:
    return list(answer({"COMP_WORDS": words, "COMP_CWORD": str(index)}, tuple(MODULES), load))


@pytest.mark.parametrize(
    ("words", "index", "want"),
    [
        ("apisix-ingress ve", 1, ["verify", "version"]),
        ("apisix-ingress --h", 1, ["--help"]),
        ("apisix-ingress lint -o ", 3, ["text", "json", "sarif", "github"]),
        ("apisix-ingress lint --li", 2, ["--live"]),
        ("apisix-ingress lint --config ", 3, []),
        ("apisix-ingress lint ", 2, []),
        ("apisix-ingress unknown --x", 2, []),
        ("apisix-ingress wait ApisixC", 2, ["ApisixConsumer", "ApisixConsumerGroup", "ApisixClusterConfig"]),
        ("apisix-ingress wait --for live ApisixGl", 4, ["ApisixGlobalRule"]),
        ("apisix-ingress wait ApisixRoute sho", 3, []),
        ("apisix-ingress status --kind ApisixU", 3, ["ApisixUpstream"]),
        ("apisix-ingress lint --suppress ServiceN", 3, ["ServiceNotFound"]),
        ("apisix-ingress lint --suppress AIX0101", 3, ["AIX0101"]),
        (f"apisix-ingress explain -f {BLOG} b", 4, ["blog.example.org"]),
        (f"apisix-ingress tree -f {BLOG} bl", 4, ["blog.example.org"]),
        ("apisix-ingress hosts --url http://127.0.0.1:1 b", 4, []),
        ("apisix-ingress explain -f nowhere.yaml b", 4, []),
        ("", 0, list(MODULES)),
    ],
)
def test_a_word_is_continued(words: str, index: int, want: list[str]) -> None:
    assert ask(words, index) == want


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ([], [*MODULES, ":4"]),
        (["ve"], ["verify", "version", ":4"]),
        (["wait", "ApisixGl"], ["ApisixGlobalRule", ":4"]),
        (["lint", "-f", "man"], [":0"]),
    ],
)
def test_kubectl_gets_a_directive_too(words: list[str], want: list[str]) -> None:
    assert list(answer_kubectl(words, tuple(MODULES), load)) == want


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_of_a_shell_is_printed(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    run_program(["--show-completion"], "apisix-ingress")
    run_program(["--show-completion", shell], "apisix-ingress")
    assert capsys.readouterr().out == 2 * SCRIPTS[shell]


def test_an_unknown_shell_has_no_script() -> None:
    with pytest.raises(UsageError, match="--show-completion tcsh: must be one of bash, zsh, fish"):
        run_program(["--show-completion", "tcsh"], "apisix-ingress")


@pytest.mark.parametrize(
    ("path", "want"), [("/bin/bash", "bash"), ("/usr/bin/fish", "fish"), ("/bin/tcsh", ""), ("", "")]
)
def test_shell_is_that_of_the_user(path: str, want: str) -> None:
    assert shell_of({"SHELL": path}) == want


@pytest.mark.parametrize("items", [[{"host": "x;touch${IFS}f;"}, {"host": "$(id)"}, {"host": "a\nb"}], [{}], ["x"], 1])
def test_a_server_cannot_insert_code_into_the_command_line(items: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell inserts the only candidate without quotes."""
    monkeypatch.setattr(completions, "read_listing", lambda *given: {"items": items})
    assert ask("apisix-ingress explain --url http://server.test ", 4) == []


def test_hosts_of_a_server_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"host": "shop.test"}, {"host": "*.shop.test"}, {"host": "a`id`.test"}]
    monkeypatch.setattr(completions, "read_listing", lambda *given: {"items": items})
    assert ask("apisix-ingress explain --url http://server.test ", 4) == ["*.shop.test", "shop.test"]
