"""Cutting an answer into blocks."""

from tests.mutants import Fault

_ANSWERS = "tests/channels/stream/test_answers.py::test_"
_LOOK = f"{_ANSWERS}people_see_of_the_blocks_what_they_would_have_seen_of_the_whole"

FAULTS = (
    Fault(
        "chunker/a-table-does-not-repeat-its-header",
        "Outline.cut",
        "for row in (0, 1))",
        "for row in ())",
        (f"{_ANSWERS}a_table_that_is_cut_repeats_its_header",),
    ),
    Fault(
        "chunker/nothing-stays-whole",
        "Chunker.__init__",
        "self._limits = (min_chars, max_chars, max(whole_chars, max_chars))",
        "self._limits = (min_chars, max_chars, max_chars)",
        (f"{_ANSWERS}what_fits_one_message_of_the_platform_stays_whole",),
    ),
    Fault(
        "chunker/a-style-is-not-opened-again",
        "Outline._cut_words",
        'mark += "".join(span.opening for span in held)',
        "pass",
        (f"{_LOOK}[emphasis-limits0]",),
    ),
    Fault(
        "chunker/links-are-cut",
        "_read",
        'return [Span(start + 1, label, "[", text[label:end])]',
        "return ()",
        (f"{_LOOK}[links-limits1]",),
    ),
    Fault(
        "chunker/an-open-style-is-taken-for-text",
        "spans",
        "elif delimiter.open and number not in closing and not ended:",
        "elif False:",
        (f"{_LOOK}[emphasis-limits1]",),
    ),
    Fault(
        "chunker/an-item-that-goes-on-is-not-opened-again",
        "Outline.cut",
        'head = "".join(f"{one.again}\\n" for one in opened if one.again)',
        'head = ""',
        ("tests/channels/stream/test_chunker.py::test_code_in_a_list_goes_on_in_the_item_without_its_marker",),
    ),
    Fault(
        "chunker/an-item-that-goes-on-shows-its-marker-again",
        "_Renderer._block",
        '                self._out.marker = ""\n            case',
        "                pass\n            case",
        (f"{_LOOK}[guide-limits1]",),
    ),
    Fault(
        "chunker/numbers-begin-anew",
        "Outline.cut",
        'head + (f"{previous}\\n" if previous else "")',
        "head",
        (f"{_ANSWERS}numbers_go_on_where_all_are_written_as_one",),
    ),
    Fault(
        "chunker/a-heading-is-left-alone",
        "Outline.places",
        'before and before.kind != "heading_open" and',
        "before and",
        (f"{_ANSWERS}a_heading_stays_with_what_follows",),
    ),
    Fault(
        "chunker/a-quote-does-not-go-on",
        "Outline._cut_words",
        "head + leaf.prefix + mark)",
        "head + mark)",
        (f"{_LOOK}[mixed-limits1]",),
    ),
    Fault(
        "chunker/what-was-said-is-said-again",
        "Chunker.__init__",
        "self._spoken = len(self._body)",
        "self._spoken = None",
        (f"{_ANSWERS}one_that_goes_on_behind_any_block_looks_the_same[code]",),
    ),
    Fault(
        "chunker/cuts-depend-on-the-slices",
        "Chunker._window",
        "return text[: index_at(text, self._due) + 1]",
        "return text",
        (f"{_ANSWERS}what_is_not_known_yet_does_not_depend_on_the_slices",),
    ),
    Fault(
        "chunker/a-block-is-two-messages",
        "Chunker._cut",
        "if seen and not cut.code and size > _SHORTEST and (many := self._messages(shown)) > 1:",
        "if False:",
        (f"{_ANSWERS}each_block_is_one_message_of_its_platform",),
    ),
    Fault(
        "chunker/messages-are-not-filled",
        "Chunker._begin",
        "full = self._joined and self._max == self._whole",
        "full = False",
        (f"{_ANSWERS}few_messages_that_are_nearly_full",),
    ),
    Fault(
        "chunker/a-pause-cuts-what-is-kept",
        "Outline._add",
        "last = len(self.lines)",
        "pass",
        (f"{_ANSWERS}a_pause_waits_for_what_stays_whole",),
    ),
    Fault(
        "chunker/a-few-words-before-a-table-stand-alone",
        "Chunker._keep",
        "if units(text[start:end].rstrip()) <= self._whole else low",
        "",
        (f"{_ANSWERS}what_is_cut_anyway_does_not_leave_a_few_words_alone",),
    ),
    Fault(
        "chunker/a-line-that-begins-ends-code",
        "Outline._add",
        "any(line.strip(_BLANK) for line in self.lines[last:])",
        'bool("\\n".join(self.lines[last:]))',
        (f"{_ANSWERS}a_line_that_begins_with_spaces_does_not_end_the_code_of_an_item",),
    ),
    Fault(
        "chunker/a-wide-table-without-its-header",
        "Chunker._cut",
        "self._whole * 2 // 3 if cut.header else self._max // 3",
        "self._max // 3",
        ("tests/channels/stream/test_answers.py::test_a_wide_table_keeps_its_header_in_small_blocks",),
    ),
    Fault(
        "chunker/the-header-of-a-table-is-torn",
        "Outline._add",
        "if not _ROW.match(self._words(leaf, rows - 1)):",
        "if True:",
        ("tests/channels/stream/test_answers.py::test_a_wide_table_keeps_its_header_in_small_blocks",),
    ),
    Fault(
        "chunker/white-space-comes-back-for-ever",
        "Chunker._cut",
        'self._begin(opening, text[cut.resume :] if seen else "")\n        if not seen:',
        "self._begin(opening, text[cut.resume :])\n        if False:",
        ("tests/channels/stream/test_chunker.py::test_white_space_that_is_cut_off_does_not_come_back",),
    ),
)
