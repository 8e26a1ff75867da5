"""Shell completion: the scripts of the shells, and the completions that they request.

A script runs the program with `_APISIX_INGRESS_COMPLETE=complete_SHELL` and the words of the line in `COMP_WORDS`; the
program prints the possible continuations of word number `COMP_CWORD`, one per line. kubectl instead runs the executable
`kubectl_complete-apisix_ingress` with the words as arguments, and expects a directive in the last line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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


def answer(environment: Mapping[str, str], names: Sequence[str], load: Callable[[str], Command]) -> Iterator[str]:
    """Yield the possible continuations of the word that a shell completes."""
    words = environment.get("COMP_WORDS", "").split()
    index = int(environment.get("COMP_CWORD") or 0)
    yield from continuations(words[1:index], words[index] if index < len(words) else "", names, load)


def answer_kubectl(words: Sequence[str], names: Sequence[str], load: Callable[[str], Command]) -> Iterator[str]:
    """Yield what kubectl expects of a plugin's completion: the continuations of the last word, and a directive."""
    *before, prefix = words or ("",)
    found = list(continuations(before, prefix, names, load))
    yield from found
    yield _NO_FILES if found else _FILES


_FILES, _NO_FILES = ":0", ":4"
"""Directives of kubectl: whether the shell offers files."""


def continuations(
    before: Sequence[str], prefix: str, names: Sequence[str], load: Callable[[str], Command]
) -> Iterator[str]:
    """Yield the words that begin with a prefix and may follow others on a command line."""
    if not before:
        found: Iterable[str] = HELP_NAMES if prefix.startswith("-") else names
    else:
        found = _of_command(load(before[0]), before[1:], prefix) if before[0] in names else ()
    yield from (word for word in found if word.startswith(prefix))


def _of_command(command: Command, before: Sequence[str], prefix: str) -> Iterable[str]:
    takes_value = {name: each for each in command.options for name in each.names if not each.is_flag}
    if before and before[-1] in takes_value:
        return takes_value[before[-1]].declared.complete(before)
    if prefix.startswith("-"):
        return (*(name for each in command.options for name in each.names), *HELP_NAMES)
    values = {position + 1 for position, word in enumerate(before) if word in takes_value}
    given = [word for position, word in enumerate(before) if position not in values and not word.startswith("-")]
    arguments = command.arguments
    if len(given) < len(arguments):
        return arguments[len(given)].declared.complete(before)
    return arguments[-1].declared.complete(before) if arguments and arguments[-1].is_list else ()
