"""How Markdown is read and written."""

from tests.mutants import Fault

_ANSWERS = "tests/channels/markdown/test_answers.py::test_"
_DISCORD = "tests/channels/discord/test_settings.py::test_"
_SLACK = "tests/channels/slack/test_render.py::test_"
_RICH = "tests/wire/test_telegram_rich.py::test_"

FAULTS = (
    Fault(
        "markdown/no-emphasis-beside-chinese-punctuation",
        "_is_mark",
        "return _is_punctuation(char) and not _is_cjk(char)",
        "return _is_punctuation(char)",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/emphasis-takes-characters-of-an-address",
        "parser",
        'inline.after("text", "bare", _bare)',
        "pass",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/a-product-is-emphasis",
        "_State.scanDelims",
        "left, right = False, right and end - start > 1",
        "pass",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/sources-that-nothing-cites-vanish",
        "_Renderer.render",
        'self._definition(token, before == "definition")',
        "pass",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/words-hide-another-address",
        "_Renderer._open_link",
        'not behind or "://" not in words',
        "True",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/a-wide-table-stays-one",
        "Table.text",
        "- 3 > _PHONE or",
        "- 3 > 9999 or",
        (f"{_ANSWERS}a_wider_one_is_a_list",),
    ),
    Fault(
        "markdown/a-table-of-padding",
        "Table.text",
        "> 2 * inked",
        "> 9999",
        (f"{_ANSWERS}padding_does_not_double_a_table",),
    ),
    Fault(
        "markdown/code-shows-what-a-spoiler-hides",
        "_Renderer._code",
        "self._within(EntityType.TEXT_LINK, EntityType.SPOILER)",
        "self._within(EntityType.TEXT_LINK)",
        (f"{_ANSWERS}what_it_becomes",),
    ),
    Fault(
        "markdown/marks-go-on-over-a-line",
        "_Line._put",
        "while not begins and",
        "while",
        (f"{_DISCORD}what_it_becomes",),
    ),
    Fault(
        "markdown/marks-beside-letters",
        "_Line._put",
        "        if self._touches(first):",
        "        if False:",
        (f"{_DISCORD}what_it_becomes",),
    ),
    Fault(
        "discord/mentions-and-marks-not-escaped",
        "_escape",
        'text = _SPECIAL.sub(r"\\\\\\g<0>", text)',
        "pass",
        (f"{_DISCORD}what_it_becomes",),
    ),
    Fault(
        "discord/link-previews",
        "_body",
        '"flags": SUPPRESS_EMBEDS',
        '"flags": 0',
        (f"{_DISCORD}the_arguments_of_a_message",),
    ),
    Fault(
        "discord/model-text-pings",
        "_body",
        '"allowed_mentions": {"parse": []}',
        '"allowed_mentions": {"parse": ["everyone"]}',
        (f"{_DISCORD}the_arguments_of_a_message",),
    ),
    Fault(
        "discord/a-message-of-any-length",
        "_fits",
        "return len(content) <= MAX_CHARS",
        "return True",
        (f"{_DISCORD}it_has_at_most_2000_code_points_with_its_marks",),
    ),
    Fault(
        "slack/model-text-pings",
        "_escape",
        '.replace("<", "&lt;").replace(">", "&gt;")',
        "",
        (f"{_SLACK}what_notifications_say_are_its_words",),
    ),
    Fault(
        "slack/addresses-are-not-told",
        "_elements",
        """kind = {"type": "link", "url": url, "text": shown} if url else""",
        """kind = {"type": "link", "url": url, "text": shown} if not shown else""",
        (f"{_SLACK}what_people_read_is_a_block",),
    ),
    Fault(
        "slack/link-previews",
        "_body",
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
        "plain_body",
        '        return bodies(arguments[RICH]["markdown"])[0]',
        "        return None",
        (f"{_RICH}one_that_is_refused_is_sent_with_entities",),
    ),
)
