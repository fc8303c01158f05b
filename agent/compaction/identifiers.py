"""Finds identifiers in a text: what a summary must repeat letter by letter, such as ids, addresses, paths and URLs.

They are recognised by their form, and a word that only looks like one does no harm: it is kept as well. Credentials are
recognised in the same way, and must not be repeated.
"""

import re
from collections.abc import Iterable
from itertools import islice

from agent.message import estimate_text

# The most identifiers that are appended to a summary, and the most characters of one; the newest are kept.
MOST, LONGEST = 200, 300

_IDENTIFIER = re.compile(
    r"""
    [a-z][a-z0-9+.-]*+://[^\s<>"'`)\]}]+                                # URLs
    | [\w.+-]++@[\w-]+(?:\.[\w-]+)+                                     # addresses of mail
    | \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b  # UUIDs
    | \b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,128}\b           # hashes
    | (?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5}|/\d{1,2})?(?!\w|\.\w) # addresses of IPv4, with ports, and networks
    | (?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:])           # addresses of IPv6
    | (?:~|\.{1,2})?(?:/[\w.@%+-]+){2,}/?                               # paths
    | \b[A-Za-z]:\\[\w.\\ -]+                                           # paths of Windows
    | \b(?:[\w-]++/)+[\w-]++\.[A-Za-z]\w{0,9}\b                        # relative paths
    | \b[\w-]++(?:\.[\w-]++)*\.[A-Za-z][A-Za-z0-9]{1,9}(?::\d{1,5})?\b  # names of hosts and files, with ports
    | (?<![\w.])[#@][A-Za-z][\w-]{2,}                                   # channels and people
    | \b[A-Z][A-Z0-9]{0,9}(?:-\d+)+\b                                  # numbers of tickets and invoices
    | \bv?\d+(?:\.\d+){2,}(?:[-+][\w.]+)?\b                            # versions
    | \b(?=\w*\d)(?=\w*[A-Za-z])\w{6,64}\b                              # ids of letters and digits
    | (?<![\w.,:])\d{4,}(?![\w,])                                       # long numbers, ports
    | (?<=:)\d{2,5}\b                                                   # ports
    """,
    re.VERBOSE | re.IGNORECASE,
)
# No identifier has a blank, and the patterns take time that grows faster than a word: a longer one is cut.
_LONG_WORD, _CUT = re.compile(r"(?<!\S)\S{500,}+"), re.compile(r"\S{400}")
_TRAILING = ".,;:!?"
_CREDENTIAL = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk|xai|gsk|xox[a-z]|xapp|glpat)-(?=[\w-]{0,300}\d)[\w-]{12,}
    | \b(?:gh[pousr]|github_pat|[sr]k_live|hf|npm)_\w{16,}
    | \b(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{30,}|ya29\.[\w-]{20,}|eyJ[\w-]{10,}(?:\.[\w-]+){2})
    | \b\d{8,10}:AA[\w-]{30,}
    | (?<=://)[^\s/:@]+:[^\s/@]+(?=@)
    | (?P<name>(?i:(?:\b|_)(?:password|passwort|passwd|pwd|secret|token|api[ _-]?key))
      ["']?(?:\s*[:=]\s*|\s+ist?\s+)["']?)
      (?=[^\s"']{0,300}[\d!$%^&*])[^\s"']{6,}
    """,
    re.VERBOSE | re.DOTALL,
)


def without_credentials(text: str) -> str:
    """Return the text with a mark in place of each password, key and token that its form gives away."""
    return _CREDENTIAL.sub(r"\g<name>[secret]", text)


def identifiers(texts: Iterable[str]) -> list[str]:
    """Return the identifiers in some texts, each once, in the order in which they came last."""
    found: dict[str, None] = {}
    for text in texts:
        words = _LONG_WORD.sub(lambda word: _CUT.sub(r"\g<0>\n", word[0]), text)
        for match in _IDENTIFIER.finditer(words):
            one = match[0].rstrip(_TRAILING)
            if len(one) <= LONGEST:
                found.pop(one, None)
                found[one] = None
    return list(found)


def lost(texts: Iterable[str], summary: str, most: int) -> list[str]:
    """Return the newest identifiers of some texts that a summary does not have, in at most so many tokens."""
    found: list[str] = []
    for one in islice((one for one in reversed(identifiers(texts)) if one not in summary), MOST):
        most -= estimate_text(one)
        if most < 0:
            break
        found.append(one)
    return found[::-1]
