"""Faults in what the model sends, edits and reads beside its answer, and in where it may."""

from tests.mutants import Fault

TEST = "tests/bot/runs/test_messaging.py::test_"
ELSEWHERE = (f"{TEST}what_is_sent_elsewhere_is_told_there_before_the_next_turn",)
SPEAKS = f"{TEST}only_where_the_bot_may_speak"

FAULTS = (
    Fault(
        "messaging/strangers-are-written-to",
        "Conversations.find",
        "        if not self.may_speak(found):\n",
        "        if not self.accounts:\n",
        (SPEAKS,),
    ),
    Fault(
        "messaging/strangers-are-found-by-name",
        "Conversations.find",
        "[one for one in heard if self.may_speak(one)]",
        "heard",
        (f"{TEST}who_is_let_in_no_more_is_not_even_named",),
    ),
    Fault(
        "messaging/reach-is-ignored",
        "Messaging.tools",
        "reach = self.reach if trusted else",
        "reach = 'all' if trusted else",
        (SPEAKS,),
    ),
    Fault(
        "messaging/one-of-two-of-a-name",
        "_directory",
        "name if count[name.casefold()] == 1 else",
        "name if count else",
        (SPEAKS,),
    ),
    Fault(
        "messaging/others-are-read-to-anybody",
        "MessageTool._target",
        "(private or action.name not in LOOKS)",
        "action.name not in LOOKS",
        (f"{TEST}direct_messages_of_others_are_not_read_for_anybody_but_an_owner",),
    ),
    Fault(
        "messaging/buttons-are-commands",
        "_buttons",
        "if any(label.startswith(COMMAND_SIGNS) for label in labels):",
        "if all(label.startswith(COMMAND_SIGNS) for label in labels) and not labels:",
        (f"{TEST}mistakes_are_told_in_words_and_send_nothing",),
    ),
    Fault(
        "messaging/silence-is-sent",
        "_checked",
        "    if is_silent(asked.text):\n",
        "    if asked.text and not asked.text.strip():\n",
        (f"{TEST}mistakes_are_told_in_words_and_send_nothing",),
    ),
    Fault(
        "messaging/messages-of-others-are-deleted",
        "MessageTool.run",
        "            if own is None:\n",
        "            own = own or place\n            if own is None:\n",
        (f"{TEST}mistakes_are_told_in_words_and_send_nothing",),
    ),
    Fault(
        "messaging/notices-of-the-service-are-its-own",
        "Reads.own_message",
        'f" AND (step IS NOT NULL OR {rows.OF_TOOL})",',
        '"",',
        (f"{TEST}what_the_service_itself_said_is_not_edited",),
    ),
    Fault(
        "messaging/nobody-is-told-of-the-outcome",
        "Outbox._carry_out_next",
        "            followed.set()\n",
        "            followed.clear()\n",
        (f"{TEST}what_actions_become_here",),
    ),
    Fault(
        "messaging/waits-for-ever",
        "Outbox.outcome",
        ".open and not timer.done():",
        ".open:",
        (f"{TEST}the_call_waits_for_its_own_sends_and_tells_what_became_of_them",),
    ),
    Fault(
        "messaging/not-told-elsewhere",
        "Turns.plan_elsewhere",
        "        if told.session_key:\n            first",
        "        if not told.session_key:\n            first",
        ELSEWHERE,
    ),
    Fault(
        "messaging/words-of-the-answer",
        "_pieces",
        "(kind IN ('api','console') OR NOT {rows.OF_TOOL})",
        "(kind IN ('api','console') OR NOT {rows.OF_TOOL} OR true)",
        ELSEWHERE,
    ),
    Fault(
        "messaging/told-though-it-was-refused",
        "noted",
        'change.event_key).state != "not sent":',
        'change.event_key).state != "":',
        (f"{TEST}what_was_refused_elsewhere_is_not_told_there",),
    ),
    Fault(
        "messaging/a-click-is-lost",
        "become_message",
        "SET kind='message', state='waiting', payload=?",
        "SET kind='message', payload=?",
        (f"{TEST}a_click_on_a_button_of_the_model_is_what_that_person_says_once",),
    ),
)
