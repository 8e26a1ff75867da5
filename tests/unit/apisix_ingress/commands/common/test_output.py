"""What commands print."""

from __future__ import annotations

import pytest

from apisix_ingress.commands.common.output import fail


@pytest.mark.parametrize(
    ("message", "want"),
    [
        ("no response", "error: no response\n"),
        ("first\nsecond", "error: first\nerror: second\n"),
        ("\x1b]0;x\x07 \x9b31m \u202e \r forged", "error: \\x1b]0;x\\x07 \\x9b31m \\u202e \\r forged\n"),
        ("", "error: \n"),
    ],
)
def test_an_error_cannot_control_the_terminal(message: str, want: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        fail(message)

    assert capsys.readouterr().err == want
