"""Which targets of a `text_link` Telegram takes, as its server decides it (tdlib: LinkManager::check_link, parse_url).

One bad target refuses the whole message when entities are passed; only with parse_mode is the link left out and its
words kept. The server takes more than a browser does: a missing scheme becomes http://, so that `notes.md`, `../up`
and `mailto:a@b.org` are links to places that do not exist.

In plain text it finds addresses by itself:

    example.com/a?b  www.example.org  t.me/name   without a scheme when the top-level domain is a known one
    README.md  setup.py  main.rs  x.sh  a.zip     likewise: these end in top-level domains
    http://host.example  http://server.local:81   with http, https, ftp or tonsite any name with a dot
    http://127.0.0.1:80/  8.8.8.8                 four numbers up to 255
    пример.рф  xn--e1afmkfd.xn--p1ai              international names
    user@example.com  mailto:user@example.com     an e-mail address; "mailto:" stays outside
    (http://example.com/a_(b)).                   without an unbalanced bracket or one of .:;,('?!` at the end

and leaves alone:

    http://localhost:3000  http://[::1]/          no dot, IPv6
    server.local  app.js  conf.yaml  file.txt     no scheme and no known top-level domain
    http://my_host.com  http://example.c          an underscore just below the top level, one letter at the top
    http://a-.com  http://a..com                  a label that is empty or ends in "-"
    256.1.1.1  http://1.2.3                       other numbers
    sftp://example.com  x.y://example.com         other schemes
    #example.com  @example.com  a/example.com     after a letter, a digit or one of _/#@
"""

import re
import socket
from dataclasses import dataclass

MAX_BYTES = 34_996  # of a target; what follows is cut

_CONTROL = re.compile(r"[\0-\x09\x0b\x0c\x0e-\x1f]")
_DROPPED = re.compile(r"[\r\u2028-\u202e\u0333\u033f\u030a]")
_OWN_SCHEME = re.compile(r"(tg|ton|tonsite):(?://)?", re.IGNORECASE | re.ASCII)
_SCHEME = re.compile(r"[^:/?#@\[\]]*(?=://)")
_SPACE = " \t\r\n\0\v"
_SYMBOLS = r"[A-Za-z0-9._!$,~*'();&+={}\-\u0080-\U0010ffff]|%[0-9A-Fa-f]{{2}}"
_HOST = re.compile(f"(?:{_SYMBOLS.format('')})*")
_USER = re.compile(f"(?:{_SYMBOLS.format(':')})*")
_MENTION = re.compile(r"tg:(?://)?user/?\?(?:[^&#]*&)*?id=([1-9][0-9]{0,11})(?:[&#]|$)", re.IGNORECASE | re.ASCII)


class BadTarget(Exception):
    """Why Telegram refuses a target, in its words."""


@dataclass(frozen=True, slots=True)
class _Address:
    scheme: str
    stated: bool
    user: str
    host: str
    ipv6: bool
    port: int
    rest: str


def cleaned(target: str) -> str:
    """A target as the server reads it: control characters are spaces, some invisible ones are gone."""
    return _DROPPED.sub("", _CONTROL.sub(" ", target))


def checked(target: str) -> str:
    """The target as Telegram keeps and shows it. Takes what `cleaned` returns; raises BadTarget."""
    own = _OWN_SCHEME.match(target)
    address = _parse(target[own.end() :] if own else target)
    if own:
        return _own(own[1].lower(), address)
    if "." not in address.host and not address.ipv6:
        raise BadTarget("Wrong HTTP URL")
    user = f"{address.user}@" if address.user else ""
    port = f":{address.port}" if address.port else ""
    return f"{address.scheme}://{user}{address.host}{port}{address.rest}"


def misread(target: str) -> str | None:
    """What an accepted target silently becomes instead of the link that was meant, None when it stays one."""
    if _MENTION.match(target):
        return "a mention that notifies a person"
    if len(target.encode()) > MAX_BYTES:
        return f"its first {MAX_BYTES} bytes"
    if _OWN_SCHEME.match(target) or _parse(target).stated:
        return None
    return checked(target)


def _own(scheme: str, address: _Address) -> str:
    """A link of Telegram's own: no port, no user, and no dot except in tonsite."""
    if address.stated or address.user or address.port or address.ipv6:
        raise BadTarget("Wrong tg URL" if scheme == "tg" else "Wrong ton URL")
    if not re.fullmatch(r"[a-z0-9_.-]*" if scheme == "tonsite" else r"[a-z0-9_-]*", address.host):
        raise BadTarget("Unallowed characters in URL host")
    return f"{scheme}://{address.host}{address.rest.removeprefix('/') if address.rest[1:2] == '?' else address.rest}"


def _parse(url: str) -> _Address:
    """`[http[s]://][user@]host[:port][rest]`; the order of the checks decides which words are answered."""
    scheme = _SCHEME.match(url)
    if scheme and scheme[0].lower() not in ("http", "https"):
        raise BadTarget("Unsupported URL protocol")
    after = url[scheme.end() + 3 :] if scheme else url
    authority = re.split(r"[/?#]", after, maxsplit=1)[0]
    user_and_host, port = _split_port(authority)
    user, _, host = user_and_host.rpartition("@")
    ipv6 = host.startswith("[") and host.endswith("]")
    if ipv6 and not _is_ipv6(host[1:-1]):
        raise BadTarget("Wrong IPv6 address specified in the URL")
    if not host:
        raise BadTarget("URL host is empty")
    if host == ".":
        raise BadTarget("Host is invalid")
    if not ipv6:
        _check_symbols(_HOST, host, "host")
        _check_symbols(_USER, user, "userinfo")
    rest = after[len(authority) :].rstrip(_SPACE).replace(" ", "%20").replace("\n", "%0A")
    host = "".join(char.lower() if char.isascii() else char for char in host)
    return _Address(
        scheme=scheme[0].lower() if scheme else "http",
        stated=bool(scheme),
        user=user,
        host=host,
        ipv6=ipv6,
        port=port,
        rest=rest if rest.startswith("/") else f"/{rest}",
    )


def _split_port(authority: str) -> tuple[str, int]:
    """The port, 0 when none is named: what follows the last colon, if no "]" or "@" comes after it."""
    at = max(authority.rfind(sign) for sign in ":]@")
    if at < 1 or authority[at] != ":":
        return authority, 0
    digits = authority[at + 1 :].lstrip("0")
    if not re.fullmatch(r"[0-9]{1,5}", digits) or int(digits) > 65_535:
        raise BadTarget("Wrong port number specified in the URL")
    return authority[:at], int(digits)


def _is_ipv6(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, text)
    except OSError:
        return False
    return True


def _check_symbols(allowed: re.Pattern[str], part: str, name: str) -> None:
    match = allowed.match(part)
    assert match is not None
    if match.end() == len(part):
        return
    if part[match.end()] == "%":
        raise BadTarget(f"Wrong percent-encoded symbol in URL {name}")
    raise BadTarget(f"Disallowed character in URL {name}")
