"""What the model is told of a thread: once, in time, and nothing of who is not let in."""

from tests.mutants import Fault

_TEST = "tests/wire/test_threads.py::test_"
_FIRST = f"{_TEST}the_first_question_in_a_thread_comes_with_what_that_hangs_on_and_its_last_words"

FAULTS = (
    Fault(
        "threads/nobody-looks-what-it-is-about",
        "Inbox._accept_message",
        "            item = replace(item, behind=True, gathers=True)\n",
        "            pass\n",
        (_FIRST,),
    ),
    Fault(
        "threads/looked-at-for-each-message",
        "is_new_in",
        "return db.execute(taken, (conv_id, session_key)).fetchone() is None",
        "return True",
        (_FIRST,),
    ),
    Fault(
        "threads/what-is-on-its-way-is-not-found",
        "History.begins",
        'return found[2] if found and is_new_in(db, *found[:2]) else ""',
        'return ""',
        (_FIRST,),
    ),
    Fault(
        "threads/the-root-is-not-told-on-slack",
        "around",
        "for one in (first, *said[-most:]) if one]",
        "for one in said[-most:] if one]",
        (f"{_FIRST}[slack]",),
    ),
    Fault(
        "threads/the-root-is-not-told-on-discord",
        "around",
        "for one in (*first, *messages)}",
        "for one in messages}",
        (f"{_FIRST}[discord]",),
    ),
    Fault(
        "threads/words-of-who-is-not-let-in",
        "Threads._shown",
        "if not self.may_show(message.origin):",
        "if False:",
        (f"{_TEST}words_of_who_is_not_let_in_are_not_shown",),
    ),
    Fault(
        "threads/quoted-words-of-who-is-not-let-in",
        "Routing.decide",
        "            message = self._veiled(message)\n",
        "            pass\n",
        (f"{_TEST}what_a_reply_quotes_of_who_is_not_let_in_is_not_shown",),
    ),
    Fault(
        "threads/words-of-the-bot-itself-are-not-read",
        "SlackChannel.around",
        "history.read_as_event(message, place), mine=True)]",
        "history.read_as_event(message, place))]",
        (f"{_TEST}a_thread_on_words_of_the_bot_comes_with_those[slack]",),
    ),
    Fault(
        "threads/words-of-the-bot-itself-look-like-somebodys",
        "_speaker",
        "if origin.sender == origin.place.account:",
        "if False:",
        (f"{_TEST}a_thread_on_words_of_the_bot_comes_with_those",),
    ),
    Fault(
        "threads/a-thread-in-direct-messages-begins-anew",
        "SlackAccount",
        "direct_threads: ClassVar[bool] = False",
        "direct_threads: ClassVar[bool] = True",
        (f"{_TEST}a_thread_in_direct_messages_on_slack_goes_on_with_them",),
    ),
    Fault(
        "threads/waited-for-without-end",
        "Threads.before",
        "async with asyncio.timeout(PATIENCE):",
        "async with asyncio.timeout(None):",
        (f"{_TEST}who_asks_in_a_thread_that_cannot_be_read_is_answered_all_the_same",),
    ),
    Fault(
        "threads/rapid-messages-are-torn",
        "CatchUp._behind",
        "gathers=gap.patience > 0)]",
        "gathers=False)]",
        (f"{_TEST}rapid_messages_at_the_beginning_of_a_thread_are_one_turn",),
    ),
    Fault(
        "threads/the-root-goes-where-much-was-said",
        "overhear",
        "AND message_id<>?3",
        "AND ?3=?3",
        ("tests/bot/persistence/test_history.py::test_what_a_thread_hangs_on_stays_however_much_is_said_in_it",),
    ),
)
