"""Faults, rate limits, attachments and the memory of the Discord stand-in, by raw calls."""

import aiohttp
import pytest

from tests.standins import discord_content
from tests.standins.discord_files import File
from tests.standins.discord_ledger import Rule
from tests.standins.discord_limits import RateLimits
from tests.standins.discord_objects import ALICE
from tests.standins.discord_raw import Clock, Raw, broken_rules, clock, discord, raw
from tests.standins.discord_server import DiscordServer

__all__ = ["clock", "discord", "raw"]  # fixtures
SEND = "POST /channels/*/messages"
DROPPED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


def rules(server: DiscordServer) -> list[Rule]:
    """All that the server holds against its client, whatever is tolerated."""
    server.ledger.tolerated.clear()
    return [one.rule for one in server.violations]


# Faults


async def test_errors_and_pages(discord: DiscordServer, raw: Raw) -> None:
    room = discord.add_channel(discord.add_guild())
    discord.fail_next(SEND, status=403, code=50013, message="Missing Permissions")
    discord.fail_next(SEND, status=502)
    discord.fail_next(SEND, status=401)
    discord.fail_next("POST /channels/{channel}/messages", status=500, code=0, page=False)
    discord.fail_next(f"POST /channels/{room['id']}/messages", status=429, page=True)
    answers = [await raw.send(room) for _ in range(5)]
    assert answers[0].body == {"message": "Missing Permissions", "code": 50013}
    assert (answers[1].status, "<title>502 Bad Gateway</title>" in answers[1].body) == (502, True)
    assert (answers[2].status, answers[2].body["message"]) == (401, "401: Unauthorized")
    assert answers[3].body == {"message": "500: error", "code": 0}
    assert (answers[4].status, answers[4].body, "Via" in answers[4].headers) == (429, "error code: 1015", False)
    assert (discord.texts(), (await raw.send(room)).status) == ([], 200)
    assert [one.body["content"] for one in discord.calls(SEND)] == ["hello"] * 6


async def test_a_connection_is_dropped_before_or_after_the_call(discord: DiscordServer, raw: Raw) -> None:
    room = discord.add_channel(discord.add_guild())
    for after, texts in ((False, []), (True, ["hello"])):
        discord.fail_next(SEND, drop=True, after_apply=after)
        with pytest.raises(DROPPED):
            await raw.send(room)
        assert discord.texts() == texts
    discord.fail_next(SEND, status=500, after_apply=True)
    refused = await raw.send(room, "")  # a call that is refused is no such call
    assert (refused.status, rules(discord)) == (400, [Rule.FAULT_NOT_FIRED])
    assert (await raw.send(room, "again")).status == 500
    assert (discord.texts(), rules(discord)) == (["hello", "again"], [])


# What is held against a client


async def test_repeated_text_late_typing_and_a_leaked_token(discord: DiscordServer, raw: Raw) -> None:
    room = discord.add_channel(discord.add_guild())
    other = discord.add_channel(discord.guilds[room["guild_id"]])
    await raw.send(room)
    await raw.send(other)
    assert rules(discord) == []
    await raw.send(room)
    assert rules(discord) == [Rule.REPEATED_TEXT]
    discord.allow_repeat("hello")
    typing = f"POST /channels/{room['id']}/typing"
    await raw(typing)
    discord.turn_over(room)
    assert rules(discord) == []
    discord.say(room, ALICE, "next")
    await raw(typing)
    assert rules(discord) == []
    discord.turn_over(room)
    await raw(typing)
    assert rules(discord) == [Rule.LATE_TYPING]
    await raw.send(room, f"my token is {discord.token}")
    assert rules(discord) == [Rule.LATE_TYPING, Rule.TOKEN_LEAK]
    with pytest.raises(AssertionError, match="no typing after"):
        discord.check()
    discord.tolerate(Rule.LATE_TYPING, Rule.TOKEN_LEAK)


# Rate limits


async def test_buckets(discord: DiscordServer, raw: Raw, clock: Clock) -> None:
    guild = discord.add_guild()
    room, other = discord.add_channel(guild), discord.add_channel(guild)
    free = await raw.send(room)
    assert free.headers["X-RateLimit-Remaining"] == "999"
    discord.limiter.limits = RateLimits()
    left = [(await raw.send(room)).headers["X-RateLimit-Remaining"] for _ in range(5)]
    assert left == ["4", "3", "2", "1", "0"]
    clock.now += 1
    refused = await raw.send(room)
    assert (refused.status, refused.headers["Retry-After"], refused.headers["X-RateLimit-Scope"]) == (429, "4", "user")
    assert refused.body == {"message": "You are being rate limited.", "retry_after": 4.0, "global": False}
    assert (await raw.send(other)).headers["X-RateLimit-Bucket"] == refused.headers["X-RateLimit-Bucket"]
    assert broken_rules(discord) == []
    clock.now += 3
    assert ((await raw.send(room)).status, broken_rules(discord)) == (429, [Rule.EARLY])
    clock.now += 1
    assert (await raw.send(room)).status == 200


async def test_the_global_limit_and_too_many_invalid_requests(discord: DiscordServer, raw: Raw, clock: Clock) -> None:
    discord.limiter.limits = RateLimits(per_route=(100, 1.0), per_second=3)
    for _ in range(3):
        await raw("GET /users/@me")
    refused = await raw("GET /users/@me")
    assert (refused.body["global"], refused.headers["X-RateLimit-Global"]) == (True, "true")
    assert discord.limiter.invalid == 1
    clock.now += 1
    discord.limiter.invalid = 10_000
    banned = await raw("GET /users/@me")
    assert (banned.status, banned.body) == (429, "error code: 1015")


async def test_a_429_that_a_test_orders_must_be_obeyed(discord: DiscordServer, raw: Raw, clock: Clock) -> None:
    room = discord.add_channel(discord.add_guild())
    discord.fail_next(SEND, status=429, retry_after=2.5)
    assert (await raw.send(room)).body["retry_after"] == 2.5
    assert ((await raw.send(room)).status, broken_rules(discord)) == (429, [Rule.EARLY])
    clock.now += 2.5
    assert (await raw.send(room)).status == 200
    discord.fail_next(SEND, status=429, retry_after=2.5, scope="shared")
    assert (await raw.send(room)).body["message"] == "The resource is being rate limited."
    assert (await raw.send(room)).status == 200


# Attachments


async def test_uploads_and_links_that_end(discord: DiscordServer, raw: Raw, clock: Clock) -> None:
    room = discord.add_channel(discord.add_guild())
    path = f"/channels/{room['id']}/messages"
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("payload_json", '{"content": "look", "attachments": [{"id": 0, "filename": "my cat.png"}]}')
    form.add_field("files[0]", b"png", filename="my cat.png", content_type="application/octet-stream")
    (file,) = (await raw(f"POST {path}", data=form)).body["attachments"]
    assert (file["filename"], file["size"]) == ("my_cat.png", 3)
    assert file["content_type"] == "image/png"
    assert not file["url"].startswith(discord.base_url.removesuffix("/api/v10"))

    async def get(url: str) -> tuple[int, str]:
        answer = await raw(f"GET {url}", token=None)
        return answer.status, answer.body

    assert await get(file["url"]) == (200, "png")
    for wrong in (
        file["url"].partition("?")[0],
        file["url"].replace("hm=", "hm=0"),
        file["url"].replace("ex=", "ex=f"),
    ):
        assert await get(wrong) == (404, "This content is no longer available.")
    clock.now += 24 * 3600
    assert (await get(file["url"]))[0] == 404
    answer = await raw("POST /attachments/refresh-urls", {"attachment_urls": [file["url"], "http://example.org/x"]})
    (fresh,) = answer.body["refreshed_urls"]
    assert (fresh["original"], await get(fresh["refreshed"])) == (file["url"], (200, "png"))
    shown = (await raw(f"GET {path}")).body[0]["attachments"][0]["url"]
    assert await get(shown) == (200, "png")
    said = discord.say(room, ALICE, files=[File("a.txt", b"words", "text/plain")])
    assert await get(discord.show(said)["attachments"][0]["url"]) == (200, "words")


async def test_downloads_fail_like_calls_and_take_no_token(discord: DiscordServer, raw: Raw) -> None:
    said = discord.dm(ALICE, files=[File("a.txt", b"words")])
    url = discord.show(said)["attachments"][0]["url"]
    assert url.startswith(discord.files.base)
    discord.fail_next("GET /attachments/*/*/*", status=503)
    discord.fail_next(f"GET /attachments/*/{said['attachments'][0]['id']}/*", status=403)
    silence = discord.fall_silent()
    assert [(await raw(f"GET {url}", token=None)).status for _ in range(3)] == [503, 403, 200]
    silence.release()
    assert ((await raw(f"GET {url}")).status, broken_rules(discord)) == (200, [Rule.TOKEN_LEAK])


async def test_uploads_keep_their_form(discord: DiscordServer, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord_content, "MAX_FILE", 100)
    room = discord.add_channel(discord.add_guild())
    path = f"/channels/{room['id']}/messages"

    def form(*parts: tuple[str, bytes]) -> aiohttp.FormData:
        built = aiohttp.FormData(quote_fields=False)
        for name, data in parts:
            built.add_field(name, data, filename=None if name == "payload_json" else "a.txt")
        return built

    strange = await raw(f"POST {path}", data=form(("file", b"x")))
    assert ("UNKNOWN_FIELD" in str(strange.body), broken_rules(discord)) == (True, [Rule.UNKNOWN_FIELD])
    many = await raw(f"POST {path}", data=form(*[(f"files[{one}]", b"x") for one in range(11)]))
    assert many.body["code"] == 30015
    big = await raw(f"POST {path}", data=form(("files[0]", b"x" * 101)))
    assert (big.status, big.body["code"]) == (413, 40005)
    alone = await raw(f"POST {path}", data=form(("files[0]", b"x")))
    assert (alone.status, alone.body["content"]) == (200, "")
