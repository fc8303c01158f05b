"""The section `web`: what of the web the model may read, and who searches."""

from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from channels.section import Secret, Section, Url, conflict, looks_like, refused, setting


def _check_port(value: str) -> str:
    if not 0 < int(value.rpartition(":")[2]) < 65536:
        raise refused("a port of 1 to 65535")
    return value.lower()


# A host and a port, such as nas.lan:80 or [fd00::1]:80.
HostPort = Annotated[
    str,
    looks_like(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", "host:port, such as nas.lan:80"),
    AfterValidator(_check_port),
]


class Follow(Section):
    """How many addresses are followed unasked that only text from outside names, and no person."""

    per_host: int = setting(2, "Of one host, with its subdomains.", ge=0, le=1000)
    per_task: int = setting(20, "In one task, which /new ends.", ge=0, le=1000)


class Fetch(Section):
    """What `web_fetch` reads."""

    allow_private: tuple[HostPort, ...] = setting(
        (), "Hosts of a private network, or of this machine, each with its port, that are read."
    )
    fake_ip: bool = setting(
        False, "Whether names may resolve into 198.18.0.0/15, as behind a proxy that answers with fake addresses."
    )
    follow: Follow = setting(Follow(), "Addresses that only pages, files, searches or other people name.")


class Search(Section):
    """Who answers `web_search`."""

    provider: Literal["brave", "searxng", "duckduckgo"] = setting(
        "duckduckgo", "Who searches; duckduckgo needs no key, and may refuse servers."
    )
    api_key: Secret = setting(None, "The key of brave.")
    base_url: Url | None = setting(
        None, "The address of searxng, also a private one; of the others where a proxy is between."
    )

    @model_validator(mode="after")
    def _can_be_asked(self) -> "Search":
        if self.provider == "brave" and self.api_key is None:
            raise conflict("brave needs web.search.api_key; duckduckgo and searxng need none", ("provider",))
        if self.provider == "searxng" and self.base_url is None:
            raise conflict("searxng needs web.search.base_url, such as http://127.0.0.1:8888", ("provider",))
        return self


class Web(Section):
    """What the model may read of the web."""

    fetch: Fetch = setting(Fetch(), "Pages that it reads.")
    search: Search = setting(Search(), "Who searches.")
