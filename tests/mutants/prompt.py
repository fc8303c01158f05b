"""The system prompt: its order, its budget, the first meeting, what /context shows, and why a cache was missed."""

from tests.mutants import Fault

_FILES = "tests/agent/test_workspace_files.py::test_"
_PROMPT = "tests/bot/runs/test_prompts.py::test_"
_REQUESTS = "tests/agent/test_workspace_files.py::test_"
_CONTEXT = f"{_PROMPT}context_shows_what_the_last_request_had_in_every_conversation"

FAULTS = (
    Fault(
        "prompt/a-guest-writes-instructions",
        "_instructions",
        ".parts[:-1]",
        ".parts",
        (f"{_FILES}instructions_are_read_from_the_workspace_down_to_above_the_room",),
    ),
    Fault(
        "prompt/agents-is-made-beside-claude",
        "_fill",
        "if not instead and",
        "if",
        (f"{_FILES}claude_stands_in_for_agents_where_there_is_none",),
    ),
    Fault(
        "prompt/why-a-file-is-missing-is-cut",
        "_within",
        " or not file.is_read",
        "",
        (f"{_FILES}a_room_has_what_is_shared_and_its_own",),
    ),
    Fault(
        "prompt/guests-are-met",
        "Prompts.made",
        "room.owned and turn.kind in (",
        "turn.kind in (",
        (f"{_PROMPT}only_owners_are_met",),
    ),
    Fault(
        "prompt/a-failed-turn-is-a-meeting",
        "end_turn",
        "if meets and outcome is Outcome.COMPLETED:",
        "if meets:",
        (f"{_PROMPT}the_first_meeting_lasts_until_a_turn_has_completed",),
    ),
    Fault(
        "prompt/the-first-meeting-never-ends",
        "Prompts.of",
        " and not (kept.first_meeting and await self.store.reads.has_met())",
        "",
        (f"{_PROMPT}the_first_meeting_lasts_until_a_turn_has_completed",),
    ),
    Fault(
        "prompt/every-transcript-is-a-first-meeting",
        "Prompts.made",
        " and not await self.store.reads.has_met()",
        "",
        (f"{_PROMPT}the_first_meeting_lasts_until_a_turn_has_completed",),
    ),
    Fault(
        "prompt/the-script-is-not-marked",
        "Turns.set_prompt",
        "prompt.first_meeting",
        "False",
        (f"{_PROMPT}the_first_meeting_lasts_until_a_turn_has_completed",),
    ),
    Fault(
        "prompt/a-changed-order-is-no-change",
        "first_change",
        "after[index] != part",
        "part not in after",
        (f"{_REQUESTS}the_log_says_which_part_changed_first",),
    ),
    Fault(
        "prompt/an-old-cache-is-missed",
        "agent/prompt/requests.py",
        "after.at - before.at > CACHED_FOR or ",
        "",
        (f"{_REQUESTS}nothing_is_said_of_what_is_as_expected",),
    ),
    Fault(
        "prompt/shortening-is-unexpected",
        "agent/prompt/requests.py",
        "or before.start != after.start",
        "or before.start > after.start",
        (f"{_REQUESTS}nothing_is_said_of_what_is_as_expected",),
    ),
    Fault(
        "prompt/requests-are-remembered-without-bound",
        "agent/prompt/requests.py",
        "while self._tokens > MAX_TOKENS",
        "while not self._tokens",
        (f"{_REQUESTS}the_last_request_is_known_before_it_is_answered_and_within_a_bound",),
    ),
    Fault(
        "prompt/context-of-the-last-transcript",
        "agent/prompt/requests.py",
        "key = transcript_id, background",
        "key = session_key, background",
        (f"{_REQUESTS}the_last_request_is_known_before_it_is_answered_and_within_a_bound", _CONTEXT),
    ),
)
