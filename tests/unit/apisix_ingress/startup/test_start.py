"""A plain `run` is started without typer, and exactly as typer would have started it."""

import inspect
import signal
import subprocess
import sys
from typing import Any
from unittest.mock import patch

import pytest
from typer.main import get_command

from apisix_ingress import cli
from apisix_ingress.commands import app as commands
from apisix_ingress.commands.run import plain_options, start

PLAIN = [
    "run",
    "run --config config.yaml",
    "run --config ./folder/../config.yaml --log-level debug",
    "run --kubeconfig ~/.kube/config --admin-url http://127.0.0.1:9180/apisix/admin --admin-key a=b",
    "run --manifests folder --http-listen [::1]:8080 --log-format json",
]
OTHER = [
    "",
    "--help",
    "version",
    "lint -f web.yaml",
    "run --help",
    "run -h",
    "run --config",
    "run --config=config.yaml",
    "run --config a.yaml --config b.yaml",
    "run --config --help",
    "run --config -",
    "run --nosuch value",
    "run config.yaml",
    "run -- --config config.yaml",
    "--config config.yaml run",
]


def by_typer(words: list[str]) -> dict[str, Any]:
    """Return what typer gives to `start`, without what is left at its default."""
    with patch.object(commands, "start") as called:
        get_command(commands.app).main(words, standalone_mode=False)
    return {name: value for name, value in called.call_args.kwargs.items() if value is not None}


@pytest.mark.parametrize("line", PLAIN)
def test_plain_command_line_means_what_typer_takes_it_for(line: str) -> None:
    got = plain_options(line.split())
    assert got is not None
    assert {name: value.removeprefix("./") for name, value in got.items()} == by_typer(line.split())


@pytest.mark.parametrize("line", OTHER)
def test_every_other_command_line_is_left_to_typer(line: str) -> None:
    assert plain_options(line.split()) is None


def test_an_empty_value_is_left_to_typer() -> None:
    assert plain_options(["run", "--manifests", ""]) is None


def test_run_has_the_options_of_start_and_no_others() -> None:
    want = {name: (each.kind, each.default) for name, each in inspect.signature(start).parameters.items()}
    got = inspect.signature(commands.run).parameters.items()
    assert {name: (inspect.Parameter.KEYWORD_ONLY, each.default) for name, each in got} == want


@pytest.mark.parametrize(("end", "status"), [(KeyboardInterrupt(), 130), (SystemExit(0), 0), (SystemExit(2), 2)])
def test_what_ends_a_start_gives_the_status_that_typer_gives(end: BaseException, status: int) -> None:
    words = ["apisix-ingress", "run", "--config", "config.yaml"]
    with (
        patch("apisix_ingress.commands.run.start", autospec=True, side_effect=end),
        patch.object(sys, "argv", words),
        pytest.raises(SystemExit) as plain,
    ):
        cli.main()
    with patch.object(commands, "start", side_effect=end), pytest.raises(SystemExit) as typed:
        commands.app(words[1:], standalone_mode=True)
    assert plain.value.code == typed.value.code == status


def test_a_start_does_not_wait_for_typer() -> None:
    script = (
        "import sys\n"
        "import apisix_ingress.app\n"
        "from apisix_ingress.cli import main\n"
        "apisix_ingress.app.run_controller = lambda settings, manifests: int(settings.log.level == 'debug') * 7\n"
        "sys.argv = ['apisix-ingress', 'run', '--log-level', 'debug']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    print(end.code, 'typer' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "7 False\n"


def told_while_it_starts(number: signal.Signals, *, first_process: bool) -> subprocess.CompletedProcess[str]:
    """Run the program, which gets a signal before the controller is there to listen for it."""
    script = (
        "import os, signal, sys\n"
        # Whoever runs the tests in the background may have it ignored, and processes inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from apisix_ingress import cli\n"
        "me = os.getpid()\n"
        f"if {first_process}: os.getpid = lambda: 1\n"
        "def start(words):\n"
        f"    os.kill(me, {int(number)})\n"
        "    print('went on')\n"
        "    return True\n"
        "cli._started = start\n"
        "sys.argv = ['apisix-ingress', 'run']\n"
        "cli.main()\n"
    )
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("number", "first_process", "status"),
    [
        (signal.SIGTERM, True, 143),
        (signal.SIGTERM, False, -signal.SIGTERM),
        (signal.SIGINT, True, 130),
        (signal.SIGINT, False, 130),
    ],
)
def test_a_signal_before_the_controller_listens_ends_the_program(
    number: signal.Signals, *, first_process: bool, status: int
) -> None:
    done = told_while_it_starts(number, first_process=first_process)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
