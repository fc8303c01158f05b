"""How Markdown is read and written."""

from tests.mutants import Fault

_ANSWERS = "tests/channels/markdown/test_answers.py::test_"
_DISCORD = "tests/channels/discord/test_render.py::test_"
_SLACK = "tests/channels/slack/test_render.py::test_"
_RICH = "tests/wire/test_telegram_rich.py::test_"

FAULTS = (
    Fault(
        "markdown/no-emphasis-beside-chinese-punctuation",
        "channels/markdown/parse.py",
        "return _is_punctuation(char) and not _is_cjk(char)",
        "return _is_punctuation(char)",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/emphasis-takes-characters-of-an-address",
        "channels/markdown/parse.py",
        'inline.after("text", "bare", _bare)',
        "pass",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/a-product-is-emphasis",
        "channels/markdown/parse.py",
        "left, right = False, right and end - start > 1",
        "pass",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/sources-that-nothing-cites-vanish",
        "channels/markdown/render.py",
        'self._definition(token, before == "definition")',
        "pass",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/words-hide-another-address",
        "channels/markdown/render.py",
        'not behind or "://" not in words',
        "True",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/a-wide-table-stays-one",
        "channels/markdown/table.py",
        "- 3 > _PHONE or",
        "- 3 > 9999 or",
        (f"{_ANSWERS}a_wider_one_is_a_list",),
    ),
    Fault(
        "markdown/a-table-of-padding",
        "channels/markdown/table.py",
        "> 2 * inked",
        "> 9999",
        (f"{_ANSWERS}padding_does_not_double_a_table",),
    ),
    Fault(
        "markdown/code-shows-what-a-spoiler-hides",
        "channels/markdown/render.py",
        "self._within(EntityType.TEXT_LINK, EntityType.SPOILER)",
        "self._within(EntityType.TEXT_LINK)",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/marks-go-on-over-a-line",
        "channels/discord/markup.py",
        "while not begins and",
        "while",
        (f"{_DISCORD}what_it_becomes",),
    ),
    Fault(
        "markdown/marks-beside-letters",
        "channels/discord/markup.py",
        "        if self._touches(first):",
        "        if False:",
        (f"{_DISCORD}what_it_becomes",),
    ),
    Fault(
        "discord/mentions-and-marks-not-escaped",
        "channels/discord/markup.py",
        'text = _SPECIAL.sub(r"\\\\\\g<0>", text)',
        "pass",
        (f"{_DISCORD}what_it_becomes",),
    ),
    Fault(
        "discord/link-previews",
        "channels/discord/render.py",
        '"flags": SUPPRESS_EMBEDS',
        '"flags": 0',
        (f"{_DISCORD}the_arguments_of_a_message",),
    ),
    Fault(
        "discord/model-text-pings",
        "channels/discord/render.py",
        '"allowed_mentions": {"parse": []}',
        '"allowed_mentions": {"parse": ["everyone"]}',
        (f"{_DISCORD}the_arguments_of_a_message",),
    ),
    Fault(
        "discord/a-message-of-any-length",
        "channels/discord/render.py",
        "return len(content) <= MAX_CHARS",
        "return True",
        (f"{_DISCORD}it_has_at_most_2000_code_points_with_its_marks",),
    ),
    Fault(
        "slack/model-text-pings",
        "channels/slack/render.py",
        '.replace("<", "&lt;").replace(">", "&gt;")',
        "",
        (f"{_SLACK}what_notifications_say_are_its_words",),
    ),
    Fault(
        "slack/addresses-are-not-told",
        "channels/slack/render.py",
        """kind = {"type": "link", "url": url, "text": shown} if url else""",
        """kind = {"type": "link", "url": url, "text": shown} if not shown else""",
        (f"{_SLACK}what_people_read_is_a_block",),
    ),
    Fault(
        "slack/link-previews",
        "channels/slack/render.py",
        '"unfurl_media": False',
        '"unfurl_media": True',
        (f"{_SLACK}the_arguments_of_a_message",),
    ),
    Fault(
        "telegram/a-rich-message-fetches-pictures",
        "channels/telegram/render.py",
        'r"!\\[|<|',
        'r"<|',
        (f"{_RICH}which_blocks_are",),
    ),
    Fault(
        "telegram/a-refused-rich-message-has-no-other-form",
        "channels/telegram/render.py",
        '        return bodies(arguments[RICH]["markdown"])[0]',
        "        return None",
        (f"{_RICH}one_that_is_refused_is_sent_with_entities",),
    ),
)
