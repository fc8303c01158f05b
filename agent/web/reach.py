"""Decides which addresses of the internet protocol a request may connect to.

What is allowed is said, not what is forbidden: an address must be a public one. Addresses that stand for others
(mapped, translated or tunnelled ones) are refused whole, whatever they stand for.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from agent.errors import ToolError

# Takes a host name and a port; returns the addresses of the host as text. Raises OSError.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
_Address = IPv4Address | IPv6Address


class WebError(ToolError):
    """A page was not read, or nothing was found. The text says why, to the model."""


def _networks(names: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, names.split()))


# Metadata and other services of Azure, Alibaba, AWS and Google, at addresses that look private or public.
_CLOUDS = _networks("168.63.129.16/32 100.100.100.200/32 fd00:ec2::/32 fd20:ce::/32")
_PRIVATE = _networks("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 127.0.0.0/8 100.64.0.0/10 ::1/128 fc00::/7")
# In which proxies answer for public names (fake-IP).
_FAKE = _networks("198.18.0.0/15")
# The only ranges that are given out; of IPv6 it holds neither mapped addresses nor those of NAT64.
_GIVEN_OUT = _networks("0.0.0.0/0 2000::/3")
# The registries of special addresses of IANA; in IPv6 with Teredo and 6to4, which stand for addresses of IPv4.
_SPECIAL = _networks(
    "0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4"
    " 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20"
)


def _within(address: _Address, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and the port of an address that the operator wrote."""
    parts = urlsplit(address)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the resolver of this machine knows them, in its order. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
# The last label of a name that resolvers take for an address in another notation: decimal, octal or hexadecimal.
_NUMBER = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)")


@dataclass(frozen=True, slots=True)
class Reach:
    """The hosts that requests may connect to: public ones, and those that the operator named."""

    # Hosts with their ports that may be private, or of this machine.
    private: frozenset[tuple[str, int]] = frozenset()
    # Whether names may resolve into the range of fake-IP proxies.
    fake_ip: bool = False
    # The key of the configuration to name where a private host is refused; empty: none allows it.
    key: str = ""
    resolver: Resolver = resolve

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Resolve a host once and return its addresses, each of which may be connected to.

        host: as it stands in a parsed URL, in ASCII. Raises WebError unless every address is allowed.
        """
        literal = _literal(host)
        try:
            answers = [str(literal)] if literal else list(dict.fromkeys(await self.resolver(host, port)))
            found = [ip_address(one) for one in answers]
        except (OSError, ValueError):
            found = []
        if not found:
            raise WebError(f"The host {host} was not found.")
        for one in found:
            if _within(one, _PRIVATE):
                allowed = (host, port) in self.private
            elif _within(one, _FAKE):
                allowed = self.fake_ip and not literal
            else:
                allowed = _within(one, _GIVEN_OUT) and not _within(one, _SPECIAL)
            if not allowed or _within(one, _CLOUDS):
                where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                how = f' Whoever runs this bot can allow a private one: "{where}" in {self.key}.' if self.key else ""
                raise WebError(f"{host} is no host of the public internet, so it is out of reach.{how}")
        return answers


def _literal(host: str) -> _Address | None:
    """Return the address that a host is; None: it is a name. Raises WebError if it is neither."""
    with suppress(ValueError):
        return ip_address(host)
    if not _NAME.fullmatch(host) or _NUMBER.fullmatch(host):
        raise WebError(f"{host[:80]!r} is no host: write a name, or an address as four decimal numbers.")
    return None
