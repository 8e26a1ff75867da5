"""`python -m reference.language [FILE ...]`: report phrases that docs/contributing/style.md rules out.

Checks the prose of pages, change notes and the chart, the strings, docstrings and comments of the product, the
benchmarks and the generators of pages, and the docstrings, comments and names of tests. Code in a page is skipped:
blocks and `spans`. Vale was rejected: its package downloads a program on first use, and it does not check the string
literals of a program.
"""

import ast
import bisect
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reference.pages import ROOT

PRODUCT = ("apisix_ingress", "providers", "translation", "crds", "benchmarks", "reference")
TESTS = ("tests", "e2e")
"""Folders of which docstrings, comments and names of tests are checked: other strings are test data."""
# Recorded and external texts, which must not be reworded, and the patterns below with their test.
FOREIGN = (
    "tests/golden/recorded",
    "e2e/devgateway/contract/",
    "benchmarks/results/",
    "reference/language.py",
    "tests/unit/reference/test_language.py",
)

# Pattern → what to write instead. White space in a text is one space before it is matched; case does not count.
BANNED: Mapping[str, str] = {
    r"(?<!\bthere )\b(?:is|are|was|were) (?-i:none)\b": 'what is missing or invalid: "unknown kind X", "no nodes"',
    r"\bnone is (?:sent|published|made|written|left)\b": '"no X is …"',
    r"(?<!\bthere )\b(?:is|are) no (?!longer\b|more\b|less\b|fewer\b)": '"is not a …"',
    r"\b(?:told|tells?|telling)\b": "say which: reports, names, describes, logs, distinguishes",
    r"\bnobody\b": '"no one", or better the thing: "no request can …", "without an owner"',
    r"\bwhoever\b": '"anyone who", or name the role: "the caller", "the user"',
    r"\bthose (?:that|which|who)\b": "repeat the noun",
    r"\bof late\b": '"recently"',
    r"\bfor nothing\b": '"has no effect"',
    r"\bfor good\b": '"permanently"',
    r"\bin vain\b": '"without success"',
    r"\banew\b": '"again", "re-create"',
    r"\bat hand\b": '"available"',
    r"\bbut for\b": '"except"',
    r"\bfor want of\b": '"without"',
    r"\bat fault\b": '"the cause"',
    r"\bsee to it\b": '"make sure"',
    r"(?<!can )(?<!to )(?<!you )\bsee that\b": '"make sure", "check that"',
    r"\b(?:goes|go|went|came|come|comes) (?:before it|ahead of all)\b": '"takes precedence"',
    r"\bgoes before\b": '"takes precedence over", "precedes"',
    r"\b(?:stands?|stood) (?:behind|in front|before|in the way)\b": '"loses to", "is behind", "blocks"',
    r"\bwho stands\b": "name the thing and its state",
    r"\b(?:is|are) in front\b": '"wins", "is served"',
    r"\b(?:lets?|letting) (?:it |them )?go\b": '"releases"',
    r"\bdecided elsewhere\b": "say where: `module` decides",
    r"\b(?:is|are) the most\b": '"the limit is …"',
    r"\bmake several\b": '"split"',
    r"\b(?:by|of) (?:itself|themselves)\b": '"automatically", or leave it out',
    r"\bthat one counts\b": '"… is used"',
    r"\b(?:does|do|did) not count\b": '"is ignored", "has no effect"',
    r"\bcounts for\b": '"applies to", "has no effect"',
    r"\bno longer counts?\b": '"no longer applies"',
    r"\b(?:than|of|in|with|by) one's\b|\bone's own\b": '"its", "your"',
    r"\b(?:is|are|was|were) (?:not )?ours\b": '"created by this controller"',
    r"\bothers'": "name them",
    r"(?:^|[.;:,(] )of (?:two|several)\b": "put the subject first: the older object wins",
    r"\b(?:gateway|server|user|object)s?'s? (?:own )?words\b": '"the gateway\'s error"',
    r"\bdemands? on clients\b": '"client-auth settings"',
    r"\bspells? of\b": '"a term of", "a period of"',
    r"\bin words\b": '"as text"',
    r"\bbehind (?:its|their|the controller's) backs?\b": '"manually", "by someone else"',
    r"\bthe 1\.8 line\b": '"1.8"',
    r"\bday two\b": '"day 2"',
    r"\bof (?:its|their) own accord\b": '"automatically"',
    r"\bluck\b": '"undefined"',
    r"\bleft to chance\b": '"undefined"',
    r"\b(?:makes?|made) of it\b": '"generates", "becomes"',
    r"\bgiven so\b": '"set this way"',
    r"\bis such a\b": '"is a …"',
    r"\bthe like\b": 'list them, or say "similar"',
    r"\bas it (?:should|is to) be\b": '"desired"',
    r"\bwhat there is\b": "name the thing",
    r"\bcan't\b": '"cannot"',
    r"^say (?:whether|if|what|that|how)\b": '"Return whether …"',
    r"\b(?:some|any|every)body\b": '"another client", "anyone", "every user"',
    r"\bwhat becomes? of\b": '"the effect on", "the result"',
    r"\bputs? (?:it |them )?right\b": '"repairs", "corrects"',
    r"\ball the (?:while|same)\b": '"meanwhile", "nevertheless"',
    r"\bhow far (?:it|a record|each record) is\b": '"its state"',
    r"^so (?:many|long|late|soon)\b": '"number of …", "seconds …"',
    r"\bin which words\b": '"with which message"',
    r"\bsays? so\b": '"reports it"',
    r"\b(?:goes|went|gone) on\b": '"continues"',
    r"\b(?:without|has no|have no) end\b(?! local)": '"endless", "unbounded"',
    r"\bfor ever\b": '"forever"',
    r"\bright again\b": '"in sync", "repaired"',
    r"\bin turns\b": '"in turn"',
    r"\b(?:gateways?|servers?|controllers?|webhook) (?:would )?refuse[sd]?\b(?! (?:\w+ )?connections?)": '"rejects"',
    r"\bfor people\b": '"as text", "for display", "readable"',
    r"\b(?:two|of|other|another) looks\b": '"read", "check", "refresh"',
    r"\b(?:does|do|did) not answer\b(?! for)|\bno answer\b": '"does not respond", "no response"',
    r"\banswer(?:s|ed)?(?: with)? [1-5]\d\d\b": '"responds with"',
    r"\bso many\b": 'the number: "at most this many", "number of … after which"',
    r"\bin a circle\b": '"in a cycle"',
    r"\bneeds? a (?:person|look)\b": '"needs attention"',
    r"\btried again\b": '"retried"',
    r"\bunder way\b": '"in flight", "in progress"',
    r"\bstands? still\b": '"stops", "does not advance"',
    r"\bturn(?:s|ed)? away\b": '"rejects"',
    r"\bthe other way round\b": '"in reverse", "vice versa"',
    r"\bswitch(?:ed|es)? (?:off|on)\b": '"disabled", "enabled"',
}
_RULES = tuple((re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in BANNED.items())
_ANY = re.compile("|".join(BANNED), re.IGNORECASE)
_CODE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$|(?P<tick>`+)(?:(?!\n\s*\n).)+?(?P=tick)|<!--.*?-->", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A phrase that the style guide rules out."""

    file: str
    line: int
    phrase: str
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.phrase!r}: write {self.advice}"


def findings(file: str, text: str) -> list[Finding]:
    """Return what is wrong with the texts of a file, by line."""
    found = [each for first, passage in _passages(file, text) for each in _matches(file, first, passage)]
    return sorted(found, key=lambda finding: finding.line)


def _passages(file: str, text: str) -> Iterable[tuple[int, str]]:
    """Return the texts of a file, each with its first line."""
    if not file.endswith(".py"):
        return [(1, _prose(text) if file.endswith(".md") else text)]
    if file.split("/")[0] not in TESTS:
        return (*_strings(text), *_comments(text))
    return (*_docstrings(text), *_comments(text), *_names(text))


def _matches(file: str, first: int, text: str) -> Iterator[Finding]:
    words = list(re.finditer(r"\S+", text))
    flat = " ".join(word.group() for word in words)
    if not _ANY.search(flat):
        return
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word.group()) + 1)
    for pattern, advice in _RULES:
        for match in pattern.finditer(flat):
            at = words[bisect.bisect_right(starts, match.start()) - 1].start()
            yield Finding(file, first + text.count("\n", 0, at), match.group().strip(), advice)


def _prose(text: str) -> str:
    """Blank the code of a page; line numbers stay."""
    return _CODE.sub(lambda match: "…" + "\n" * match.group().count("\n"), text)


def _strings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the value of each string of a module; an expression in an f-string becomes `…`."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def _docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the value of each docstring of a module, those of attributes included."""
    for node in ast.walk(ast.parse(text)):
        for each in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield each.lineno, each.value.value


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment of a module; those of several lines line by line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of the name of each test."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_").replace("_", " ")


def sources(root: Path) -> list[str]:
    """Return the files to check: pages, change notes, the chart, and the modules of the product."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, check=True, text=True
    )
    return [name for name in sorted(listed.stdout.splitlines()) if _is_checked(name) and (root / name).is_file()]


def _is_checked(name: str) -> bool:
    if name.startswith(FOREIGN):
        return False
    if name.endswith(".py"):
        return name.split("/")[0] in (*PRODUCT, *TESTS)
    return (name.endswith(".md") and not name.startswith("tests/")) or (
        name.startswith("deploy/") and name.endswith((".yaml", ".json", ".txt", ".tpl"))
    )


def check(root: Path, names: Iterable[str]) -> list[Finding]:
    """Return the findings of files."""
    return [each for name in names for each in findings(name, (root / name).read_text(encoding="utf-8"))]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Check the given files, or all; return 1 if there is a finding."""
    names = list(sys.argv[1:] if arguments is None else arguments)
    found = check(root, names or sources(root))
    for each in found:
        print(each, file=sys.stderr)
    if found:
        print(f"{len(found)} phrases to reword; docs/contributing/style.md has examples", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
