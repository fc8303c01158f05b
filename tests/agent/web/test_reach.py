"""Where requests to the web may go. Every refusal comes before any connection is made."""

import ssl
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agent.web.fetch import Fetcher
from agent.web.reach import Reach, WebError, host_and_port

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1::1"
TLS = ssl.create_default_context()


@pytest.fixture
def connects(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """All attempts to connect, of which none succeeds."""
    tried: list[tuple[str, int]] = []

    async def connect(remote_host: str, remote_port: int, **given: Any) -> None:
        tried.append((str(remote_host), remote_port))
        raise OSError("no network in tests")

    monkeypatch.setattr(anyio, "connect_tcp", connect)
    return tried


class Names:
    """A resolver with an answer for each time it is asked; the last one holds on."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, int]]()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def fetcher(resolver: Names, **reach: Any) -> Fetcher:
    return Fetcher(Reach(resolver=resolver, **reach), tls=TLS)


# What names resolve to: private, of this machine, of the link, of providers, of clouds, reserved, mapped, translated.
REFUSED_ANSWERS = (
    *("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.255"),
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.170.2", "169.254.0.1"),
    *("100.64.0.1", "100.127.255.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1"),
    *("192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.1.1.1"),
    *("240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fe80::1%lo", "fec0::1", "fc00::1", "fd12:3456::1", "fd00:ec2::254", "fd20:ce::254"),
    *("ff02::1", "ff05::1:3", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::127.0.0.1"),
    *("2002:7f00:1::1", "2002:a9fe:a9fe::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"),
)


@pytest.mark.parametrize("answer", REFUSED_ANSWERS)
async def test_a_name_with_such_an_address_is_refused(connects: list[tuple[str, int]], answer: str) -> None:
    for answers in ([answer], [PUBLIC, answer], [answer, PUBLIC], [PUBLIC_6, answer]):
        with pytest.raises(WebError):
            await fetcher(Names(answers)).get("http://page.test/")
    assert connects == []


REFUSED = (
    *("http://127.0.0.1/", "http://127.0.0.1:8420/v1/agent", "http://10.0.0.1", "http://[::1]/", "http://[::]/"),
    *("http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://[::ffff:127.0.0.1]/"),
    *("http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://[fe80::1%25eth0]/", "http://[fe80::1]/"),
    # In other notations, which some resolvers read.
    *("http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/"),
    *("http://127.0.1/", "http://017700000001/", "http://0x7f.0x0.0x0.0x1/", "http://127.0.0.1./", "http://1.1.1.1.1/"),
    *("http://127。0。0。1/", "http://%31%32%37.0.0.1/", "http://127.0.0.0x1/", "http://0/", "http://0x/"),
    # With users, other schemes, and what is no address.
    *("http://user@page.test/", "http://user:word@page.test/", "http://good.test\\@169.254.169.254/"),
    *(
        "ftp://page.test/",
        "file:///etc/passwd",
        "gopher://page.test/",
        "data:text/plain,x",
        "//page.test/",
        "page.test",
    ),
    *("http://", "http:///x", "http://pa ge.test/", "http://page.test\t/", "http://[::1", "http://page.test:99999999/"),
    *("http://-page.test/", "http://①②⑦.0.0.1/", "javascript:alert(1)", "http://page.test:port/", ""),
)


@pytest.mark.parametrize("address", REFUSED)
async def test_such_an_address_is_refused(connects: list[tuple[str, int]], address: str) -> None:
    with pytest.raises(WebError):
        await fetcher(Names(["127.0.0.1"])).get(address)
    assert connects == []


@pytest.mark.parametrize("address", ["http://0x7f.1/", "http://127.1/", "http://2130706433/", "http://%31.test/"])
async def test_no_resolver_is_asked_about_what_is_no_name(connects: list[tuple[str, int]], address: str) -> None:
    names = Names([PUBLIC])
    with pytest.raises(WebError, match="is no host"):
        await fetcher(names).get(address)
    assert (names.asked, connects) == ([], [])


async def test_a_public_address_is_connected_to_exactly(connects: list[tuple[str, int]]) -> None:
    for address, answers, expected in (
        ("http://page.test/", [PUBLIC], [(PUBLIC, 80)]),
        ("https://page.test/", [PUBLIC_6], [(PUBLIC_6, 443)]),
        ("https://PAGE.test.:8443/", [PUBLIC, PUBLIC_6], [(PUBLIC, 8443), (PUBLIC_6, 8443)]),
        (f"http://{PUBLIC}:81/", [], [(PUBLIC, 81)]),
        (f"http://[{PUBLIC_6}]/", [], [(PUBLIC_6, 80)]),
    ):
        names = Names(answers)
        with pytest.raises(WebError, match="was not reached"):
            await fetcher(names).get(address)
        assert connects == expected
        assert names.asked == ([("page.test", expected[0][1])] if answers else [])
        connects.clear()


async def test_what_changes_between_the_check_and_the_connection_changes_nothing(
    connects: list[tuple[str, int]],
) -> None:
    names = Names([PUBLIC], ["127.0.0.1"])
    with pytest.raises(WebError, match="was not reached"):
        await fetcher(names).get("http://page.test/")
    assert (connects, len(names.asked)) == ([(PUBLIC, 80)], 1)
    with pytest.raises(WebError, match="no host of the public internet"):
        await fetcher(names, key="web.fetch.allow_private").get("http://page.test/")
    assert connects == [(PUBLIC, 80)]


async def test_a_name_without_an_address_is_said(connects: list[tuple[str, int]]) -> None:
    for answers in ([], ["no address"]):
        with pytest.raises(WebError, match=r"The host page\.test was not found\."):
            await fetcher(Names(answers)).get("http://page.test/")
    assert connects == []


async def test_a_private_host_is_read_where_the_operator_named_it_with_its_port(
    connects: list[tuple[str, int]],
) -> None:
    named = frozenset({("nas.test", 8080), ("192.168.1.5", 80), ("fd00::1", 80)})

    async def tried(address: str, *answers: str) -> list[tuple[str, int]]:
        connects.clear()
        with pytest.raises(WebError):
            await fetcher(Names(answers), private=named).get(address)
        return list(connects)

    for answer in ("192.168.1.5", "127.0.0.1", "fd00::1", "100.64.3.4", PUBLIC):
        assert await tried("http://nas.test:8080/", answer) == [(answer, 8080)]
    assert await tried("http://192.168.1.5/") == [("192.168.1.5", 80)]
    assert await tried("http://[fd00::1]/") == [("fd00::1", 80)]
    assert await tried("http://nas.test:8081/", "192.168.1.5") == []
    assert await tried("http://other.test:8080/", "192.168.1.5") == []
    assert await tried("http://192.168.1.5:8080/") == []
    for never in ("169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "0.0.0.0", "::ffff:192.168.1.5"):
        assert await tried("http://nas.test:8080/", "192.168.1.5", never) == []


async def test_a_refusal_names_the_key_that_allows_it() -> None:
    names = Names(["192.168.1.5"])
    with pytest.raises(WebError, match=r'"nas\.test:8080" in web\.fetch\.allow_private'):
        await fetcher(names, key="web.fetch.allow_private").get("http://nas.test:8080/")
    with pytest.raises(WebError, match=r'"\[::1\]:80" in web\.fetch\.allow_private'):
        await fetcher(names, key="web.fetch.allow_private").get("http://[::1]/")
    with pytest.raises(WebError, match=r"out of reach\.$"):
        await fetcher(names).get("http://nas.test:8080/")


async def test_fake_addresses_are_followed_only_from_names_and_only_where_that_is_set(
    connects: list[tuple[str, int]],
) -> None:
    with pytest.raises(WebError, match="was not reached"):
        await fetcher(Names(["198.18.3.4"]), fake_ip=True).get("http://page.test/")
    assert connects == [("198.18.3.4", 80)]
    for reach, address in ((True, "http://198.18.3.4/"), (False, "http://page.test/")):
        with pytest.raises(WebError, match="no host of the public internet"):
            await fetcher(Names(["198.18.3.4"]), fake_ip=reach).get(address)
    with pytest.raises(WebError, match="no host of the public internet"):
        await fetcher(Names(["198.18.3.4", "10.0.0.1"]), fake_ip=True).get("http://page.test/")
    assert connects == [("198.18.3.4", 80)]


def test_host_and_port_of_what_an_operator_writes() -> None:
    assert host_and_port("http://Nas.test:8080/x") == ("nas.test", 8080)
    assert host_and_port("https://nas.test") == ("nas.test", 443)
    assert host_and_port("http://[FD00::1]") == ("fd00::1", 80)
