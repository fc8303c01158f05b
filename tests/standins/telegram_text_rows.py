"""The rows of telegram_rows that concern text and entities."""

from tests.standins.telegram_rows import EMOJI, Row, entity, lost, mark, send, text
from tests.standins.telegram_updates import ALICE

LINK = {"url": "https://example.org/"}

TEXT_ROWS: list[Row] = [
    # text
    send("text is required", {"chat_id": ALICE.id}, "message text is empty", text("x")),
    send("text has at least one character", text(""), "message text is empty", text("x")),
    send("white space is no text", text(" \n\t "), "text must be non-empty", text(" x ")),
    send("4096 characters", text("x" * 4097), "message is too long", text("x" * 4096)),
    send("4096 in UTF-16", text(EMOJI * 2049), "message is too long", text(EMOJI * 2048)),
    send("half a surrogate pair", text("a\ud83d"), "strings must be encoded in UTF-8", text("a" + EMOJI)),
    # MessageEntity
    entity("offset inside the text", text("abc", mark("bold", 4, 1)), "entity beginning at UTF-16 offset 4 ends after",
        text("abc", mark("bold", 2, 1))),
    entity("end inside the text", text("abc", mark("bold", 1, 3)), "entity beginning at UTF-16 offset 1 ends after",
        text("abc", mark("bold", 1, 2))),
    entity("UTF-16, not code points", text(EMOJI + "b", mark("bold", 1, 1)),
        "entity begins in a middle of a UTF-16 symbol", text(EMOJI + "b", mark("bold", 2, 1))),
    entity("no end inside a surrogate pair", text("b" + EMOJI, mark("bold", 0, 2)),
        "entity beginning at UTF-16 offset 0 ends in a middle", text("b" + EMOJI, mark("bold", 0, 3))),
    entity("offset is not negative", text("abc", mark("bold", -1, 1)), "receive an entity with incorrect offset -1",
        text("abc", mark("bold", 0, 1))),
    entity("length is not negative", text("abc", mark("bold", 1, -1)), "receive an entity with incorrect length -1",
        text("abc", mark("bold", 1, 1))),
    entity("type is known", text("abc", mark("blink", 0, 1)), "can't parse MessageEntity: unsupported type",
        text("abc", mark("spoiler", 0, 1))),
    entity("type is required", text("abc", {"offset": 0, "length": 1}),
        "can't parse MessageEntity: can't find field \"type\"", text("abc", mark("italic", 0, 1))),
    entity("length is required", text("abc", {"type": "bold", "offset": 0}),
        "can't parse MessageEntity: can't find field \"length\"", text("abc", mark("bold", 0, 3))),
    entity("text_link needs url", text("abc", mark("text_link", 0, 1)),
        "can't parse MessageEntity: can't find field \"url\"", text("abc", mark("text_link", 0, 1, **LINK))),
    lost("an entity has a length", text("abc", mark("bold", 1, 0)), text("abc", mark("bold", 1, 1))),
    lost("at most 100 entities", text("ab" * 101, *(mark("bold", 2 * n, 1) for n in range(101))), text("ab" * 101,
        *(mark("bold", 2 * n, 1) for n in range(100)))),
    lost("common characters only when one is inside the other", text("abcd", mark("bold", 0, 3), mark("italic", 1, 3)),
        text("abcd", mark("bold", 0, 4), mark("italic", 1, 2))),
    lost("pre and code share nothing with others", text("abcd", mark("bold", 0, 4), mark("code", 1, 2)), text("abcd",
        mark("bold", 0, 2), mark("code", 2, 2))),
    lost("no code inside pre", text("abcd", mark("pre", 0, 4, language="python"), mark("code", 1, 2)), text("abcd",
        mark("pre", 0, 4, language="python"))),
    lost("no link inside a link", text("abcd", mark("text_link", 0, 4, **LINK), mark("text_link", 1, 2, **LINK)),
        text("abcd", mark("text_link", 0, 4, **LINK), mark("bold", 1, 2))),
    lost("no quotation inside a quotation", text("abcd", mark("blockquote", 0, 4), mark("expandable_blockquote", 1,
        2)), text("abcd", mark("blockquote", 0, 4), mark("text_link", 1, 2, **LINK))),
]  # fmt: skip
