"""The table of problem codes: the number, meaning, effect and remedy of each code word.

Numbers never change, and the number of a retired code is never reused. They are grouped by hundreds: 00 files,
01 references, 02 values, 03 Secrets and certificates, 04 plugins, 05 hosts and paths, 06 rejected by settings,
07 gateway clusters, 08 without effect, 09 other, 10 Gateway API, 11 states of records. The pages in
docs/reference/codes are generated from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from apisix_ingress.model.problem_codes.cluster_codes import CLUSTER_CODES
from apisix_ingress.model.problem_codes.code import Code
from apisix_ingress.model.problem_codes.gateway_api_codes import GATEWAY_API_CODES
from apisix_ingress.model.problem_codes.host_codes import HOST_CODES
from apisix_ingress.model.problem_codes.nginx_codes import NGINX_CODES
from apisix_ingress.model.problem_codes.policy_codes import POLICY_CODES
from apisix_ingress.model.problem_codes.reference_codes import REFERENCE_CODES
from apisix_ingress.model.problem_codes.secret_codes import SECRET_CODES
from apisix_ingress.model.problem_codes.state_codes import STATE_CODES
from apisix_ingress.model.problem_codes.value_codes import VALUE_CODES

_GROUPS = (
    REFERENCE_CODES,
    VALUE_CODES,
    SECRET_CODES,
    HOST_CODES,
    POLICY_CODES,
    NGINX_CODES,
    CLUSTER_CODES,
    GATEWAY_API_CODES,
    STATE_CODES,
)
_ALL = sorted((code for group in _GROUPS for code in group), key=lambda code: code.number)

CODES: Mapping[str, Code] = {code.word: code for code in _ALL}
"""Word → code."""

NUMBERS: Mapping[str, Code] = {code.number: code for code in _ALL}
"""Number → code."""


def find_code(text: str) -> Code:
    """Return the code with this number or word, in any case.

    Raises:
        ValueError: Unknown code; the message names the most similar one.
    """
    known = {name.lower(): code for name, code in (*CODES.items(), *NUMBERS.items())}
    if code := known.get(text.lower()):
        return code
    near = difflib.get_close_matches(text.lower(), known, n=1, cutoff=0.6)
    advice = f": did you mean {known[near[0]]}?" if near else " (codes look like AIX0101)"
    raise ValueError(f"unknown code {text or repr(text)}{advice}")
