"""Shell completion: the scripts of the shells, and the completions that they request.

A script runs the program with `_APISIX_INGRESS_COMPLETE=complete_SHELL` and the words of the line in `COMP_WORDS`; the
program prints the possible continuations of word number `COMP_CWORD`, one per line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.arguments.parser import HELP_NAMES, Command

VARIABLE = "_APISIX_INGRESS_COMPLETE"
PROGRAM = "apisix-ingress"

_BASH = f"""\
_apisix_ingress_completion() {{
    local IFS=$'\\n'
    COMPREPLY=( $( env COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD=$COMP_CWORD {VARIABLE}=complete_bash $1 ) )
    return 0
}}

complete -o default -F _apisix_ingress_completion {PROGRAM}
"""
_ZSH = f"""\
#compdef {PROGRAM}

_apisix_ingress_completion() {{
    local -a found
    found=("${{(@f)$(env COMP_WORDS="${{(F)words}}" COMP_CWORD=$((CURRENT-1)) {VARIABLE}=complete_zsh $words[1])}}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}}

compdef _apisix_ingress_completion {PROGRAM}
"""
_FISH = f"""\
function _apisix_ingress_completion
    set -lx COMP_WORDS (string join \\n -- (commandline -opc) (commandline -ct))
    set -lx COMP_CWORD (count (commandline -opc))
    env {VARIABLE}=complete_fish {PROGRAM}
end

complete --command {PROGRAM} --arguments '(_apisix_ingress_completion)'
"""
SCRIPTS: Mapping[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def shell_of(environment: Mapping[str, str]) -> str:
    """Return the name of the user's shell, or an empty string if there is no completion for it."""
    name = os.path.basename(environment.get("SHELL", ""))
    return name if name in SCRIPTS else ""


def install(shell: str, home: Path) -> Path:
    """Write the script where the shell finds it, and return its path; repeating it changes nothing."""
    path = {
        "bash": home / ".bash_completions" / f"{PROGRAM}.sh",
        "zsh": home / ".zfunc" / f"_{PROGRAM}",
        "fish": home / ".config" / "fish" / "completions" / f"{PROGRAM}.fish",
    }[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPTS[shell])
    if shell == "bash":
        _append(home / ".bashrc", f"source '{path}'")
    elif shell == "zsh":
        _append(home / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
    return path


def _append(file: Path, line: str) -> None:
    text = file.read_text() if file.exists() else ""
    if line not in text.splitlines():
        file.write_text(f"{text}\n{line}\n" if text else f"{line}\n")


def answer(environment: Mapping[str, str], names: Sequence[str], load: Callable[[str], Command]) -> Iterator[str]:
    """Yield the possible continuations of the word that a shell completes."""
    words = environment.get("COMP_WORDS", "").split()
    index = int(environment.get("COMP_CWORD") or 0)
    before, prefix = words[1:index], words[index] if index < len(words) else ""
    if not before:
        found = _of_program(names, prefix)
    elif before[0] in names:
        found = _of_command(load(before[0]), before[-1], prefix)
    else:
        found = iter(())
    yield from (word for word in found if word.startswith(prefix))


def _of_program(names: Sequence[str], prefix: str) -> Iterator[str]:
    yield from HELP_NAMES if prefix.startswith("-") else names


def _of_command(command: Command, last: str, prefix: str) -> Iterator[str]:
    asked = next((each for each in command.options if last in each.names and not each.is_flag), None)
    if asked is not None:
        yield from asked.declared.words if isinstance(asked.declared, Option) else ()
    elif prefix.startswith("-"):
        yield from (name for each in command.options for name in each.names)
        yield from HELP_NAMES
