"""People: who is let in, who decides, and what a guest may see."""

from tests.mutants import Fault, code, fault, text

_PIPELINE = "tests/agent/calls/test_pipeline.py::test_"
_PLAIN_WORDS = "tests/bot/approvals/test_plain_words.py::test_"
_ACCESS = "tests/bot/gateway/test_access.py::test_"
_PAIRING = "tests/bot/inbound/test_pairing.py::test_"
_PEOPLE = "tests/bot/people/test_people.py::test_"
_DATABASE = "tests/bot/store/test_database.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "access/any-token",
        "Guard._refusal",
        code("hmac.compare_digest(A.strip(), self._token)", "A"),
        f"{_ACCESS}a_wrong_token_is_refused",
    ),
    fault(
        "access/commands-see-the-environment",
        "scrubbed",
        code(
            "{'PATH': _DEFAULT_PATH, **A, 'TERM': 'dumb', **SAFE_ENVIRONMENT}",
            "{'PATH': _DEFAULT_PATH, **environ, 'TERM': 'dumb', **SAFE_ENVIRONMENT}",
        ),
        "tests/agent/tools/test_exec.py::test_sees_no_secret_no_input_and_no_terminal",
    ),
    fault(
        "access/two-processes-one-store",
        "lock_directory",
        code("fcntl.LOCK_EX", "fcntl.LOCK_SH"),
        f"{_DATABASE}a_second_process_is_refused_until_the_first_is_gone_however_it_ended",
    ),
    fault(
        "access/programs-are-trusted-without-a-token",
        "is_trusted",
        code("A.place.kind is not ChatKind.API or A.sender == OWNER", "A.place.kind is not None"),
        f"{_ACCESS}without_a_token_the_service_is_nobodys_business",
        f"{_ACCESS}commands_of_this_machine_are_not_for_those_without_a_token",
    ),
    fault(
        "access/everybody-has-the-token",
        "Guard.__init__",
        code("Caller.PERSON if A is None else Caller.TOKEN", "Caller.TOKEN"),
        f"{_ACCESS}without_a_token_there_are_only_sessions_of_ones_own",
    ),
    fault(
        "access/what-others-said-is-replayed",
        "Reads.events_after",
        text("instr(session_key, ?5) = 1", "?5 = ?5"),
        f"{_ACCESS}without_a_token_nothing_is_heard_of_other_sessions",
    ),
    fault(
        "access/a-code-is-good-twice",
        "People.settle",
        code("B.standing != 'pending' or B.until <= A", "B.until and B.until <= A"),
        "tests/bot/persistence/test_people.py::test_a_code_is_given_once_and_lets_in_once",
        f"{_PAIRING}a_code_is_good_once",
    ),
    fault(
        "access/codes-are-kept-readable",
        "digest",
        code("hashlib.sha256(A.strip().upper().encode('utf-8', 'replace')).hexdigest", "A.strip().upper"),
        f"{_PAIRING}a_stranger_is_let_in_by_a_code_and_what_they_wrote_is_answered",
    ),
    fault(
        "access/the-waiting-message-is-forgotten",
        "People._released",
        text("state='waiting',", "state='dropped',"),
        f"{_PAIRING}a_stranger_is_let_in_by_a_code_and_what_they_wrote_is_answered",
    ),
    fault(
        "access/owner-commands-for-all",
        "Registry.get",
        code("A if A and A.is_for(B) else None", "A"),
        f"{_PAIRING}for_others_the_command_does_not_exist",
    ),
    fault(
        "people/a-code-lets-in-on-every-account",
        "People.let_in_by",
        code(
            "(A, B.place.account, B.sender) in self._paired",
            "any(((one[0], one[2]) == (A, B.sender) for one in self._paired))",
        ),
        f"{_PEOPLE}a_code_opens_the_account_that_it_was_given_for",
    ),
    fault(
        "people/the-store-comes-before-memory",
        "Pairing.stand",
        code("self.people.shut_out(B, blocked=C == 'block') if not A else lambda: None", "lambda: None"),
        f"{_PEOPLE}what_comes_while_it_is_being_stored_is_decided_by_it",
        f"{_PEOPLE}who_is_blocked_gets_in_nowhere_whatever_lets_them_in",
    ),
    fault(
        "people/what-others-asked-for-ends-as-well",
        "_ended",
        text("(other.channel, other.sender) <> (inbox.channel, inbox.sender))", "0)"),
        "tests/bot/persistence/test_people.py::test_what_others_asked_for_as_well_goes_on",
    ),
    fault(
        "people/what-waits-is-answered",
        "_ended",
        text("state='dropped', reason='", "reason='"),
        f"{_PEOPLE}what_somebody_asked_for_ends_when_they_are_revoked",
    ),
    fault(
        "permissions/who-writes-changes-the-prefix",
        "Permissions._decided",
        code("self._in_session(A, B)", "self._of_sender(A.messages[0].origin)"),
        "tests/bot/runs/test_permissions.py::test_the_tools_of_a_session_are_the_same_bytes_whoever_writes",
    ),
    fault(
        "permissions/the-first-sender-decides-for-all",
        "Permissions._decided",
        code("[A for B in C.messages]", "[A for B in C.messages[:1]]"),
        "tests/bot/runs/test_permissions.py::test_all_who_wrote_a_turn_count[1-2]",
    ),
    fault(
        "policy/deny-does-not-win",
        "rules",
        code("Rule(f'{B}.deny', A, only=False)", "Rule(f'{B}.deny', () if allow else A, only=False)"),
        "tests/agent/tools/test_schema.py::test_patterns_and_groups",
    ),
    fault(
        "approvals/older-words-answer",
        "meant_by",
        code("B.sent_at + _CLOCKS if B.sent_at else A", "A"),
        "tests/bot/approvals/test_decided_elsewhere.py::test_what_was_written_before_a_question_is_no_answer",
    ),
    fault(
        "approvals/words-answer-one-of-several",
        "meant_by",
        code("len(A) == 1", "A"),
        "tests/bot/approvals/test_decided_elsewhere.py::test_words_that_may_mean_several_questions_answer_none",
    ),
    fault(
        "approvals/any-beginning-of-an-id-counts",
        "Approvals.find",
        code("_NAMED.fullmatch(A)", "A.isalnum()"),
        "tests/bot/approvals/test_request_ids.py::test_an_id_counts_whole_or_as_it_is_shown",
    ),
    fault(
        "approvals/a-forged-press-is-open-to-everybody",
        "Requests.is_open_to",
        code("chat_of(A) == chat_of(B.place)", "message.kind is InboundKind.BUTTON or chat_of(A) == chat_of(B.place)"),
        "tests/bot/approvals/test_request_ids.py::test_strangers_learn_nothing_of_a_request",
    ),
    fault(
        "approvals/an-expired-decision-counts-for-anything",
        "Decision.allows",
        code("self.digest == A.digest", "self.state == 'expired' or self.digest == A.digest"),
        "tests/bot/approvals/test_decided_elsewhere.py::test_what_expired_counts_for_what_was_shown",
    ),
    fault(
        "plain-words/the-first-word-decides",
        "decision",
        code("A in _YES", "(A.split() or [''])[0] in _YES"),
        f"{_PLAIN_WORDS}the_words_that_decide_are_few_and_stand_alone",
        f"{_PLAIN_WORDS}a_reply_in_other_words_is_asked_back",
    ),
    fault(
        "plain-words/several-wait",
        "_last_in",
        code("len({A[0] for A in B}) != 1", "not B"),
        f"{_PLAIN_WORDS}a_plain_word_that_may_be_about_something_else_decides_nothing[two]",
    ),
    fault(
        "plain-words/words-of-somebody-else",
        "meant_by",
        code("(None, ()) if B.forwarded else A", "A"),
        f"{_PLAIN_WORDS}a_plain_word_that_may_be_about_something_else_decides_nothing[forwarded]",
    ),
    fault(
        "plain-words/in-a-group-without-a-reply",
        "meant_by",
        code("A.kind is ChatKind.DIRECT", "A.kind is not ChatKind.API"),
        f"{_PLAIN_WORDS}in_a_group_only_a_reply_decides",
    ),
    fault(
        "pipeline/hooks-come-behind-validation",
        "Pipeline._prepare",
        code("A.arguments", "repaired(call, self._spec.tools.by_name).arguments"),
        f"{_PIPELINE}the_order_of_the_steps",
        f"{_PIPELINE}what_a_person_allows_is_what_hooks_have_made_of_it",
    ),
    fault(
        "pipeline/secrets-in-results",
        "Pipeline._result",
        code("self._spec.overflow.clean(well_formed(A.text))", "well_formed(A.text)"),
        f"{_PIPELINE}no_secret_is_stored_told_or_sent",
        f"{_PIPELINE}a_long_result_has_no_secret_in_its_file",
    ),
    fault(
        "pipeline/a-secret-in-two-pieces",
        "Mask.feed",
        code("len(A) - (0 if B else self._withheld(A))", "len(A)"),
        f"{_PIPELINE}no_secret_is_stored_told_or_sent",
    ),
    fault(
        "tools/arguments-not-checked",
        "parse_arguments",
        code("B.parameters.model_validate_json(A)", "B.parameters.model_construct(**json.loads(A))"),
        "tests/agent/tools/test_schema.py::test_mistakes_are_explained",
    ),
    fault(
        "rooms/two-make-one-at-once",
        "Rooms.enter",
        code("self._making", "asyncio.Lock()"),
        "tests/bot/runs/test_rooms.py::test_two_sessions_of_one_room_begin_at_once",
    ),
    fault(
        "rooms/one-id-of-an-owner-is-enough",
        "Rooms._is_owners",
        code("all", "any"),
        "tests/bot/runs/test_rooms.py::test_the_room_of_a_session",
    ),
    fault(
        "rooms/answers-send-files-of-the-workspace",
        "AnswerFiles.named",
        code("self._rooms.inside(self._session_key)", "self._rooms.inside('agent:main:main')"),
        "tests/bot/runs/test_room_changes.py::test_files_that_are_sent_are_those_of_the_room[2]",
    ),
    fault(
        "rooms/guests-have-all-tools",
        "GUEST",
        code("'message'", "*('message', '*')"),
        "tests/bot/runs/test_guest_profile.py::test_a_guest_has_what_the_profile_names",
    ),
    fault(
        "rooms/the-best-of-them-decides",
        "Permissions._decided",
        code("any", "all"),
        "tests/bot/runs/test_guest_profile.py::test_a_turn_of_several_people_has_the_rights_of_the_least",
    ),
    fault(
        "rooms/a-link-is-sent",
        "OutgoingFile.open",
        code("os.O_RDONLY | os.O_NOFOLLOW", "os.O_RDONLY"),
        "tests/wire/test_channel_contract.py::test_no_link_leads_to_another_file",
    ),
    fault(
        "places/a-guess-counts",
        "Claims.claim",
        code("serves and A and B", "False and A and B"),
        "tests/bot/runs/test_shares.py::test_whose_a_session_is_was_guessed_and_the_claim_knows",
    ),
    fault(
        "places/owners-are-read-last",
        "Inbox.waiting_sessions",
        text("ORDER BY owned DESC, nth, since", "ORDER BY since"),
        "tests/bot/runs/test_shares.py::test_shares_hold_after_a_restart_and_owners_are_found_first",
    ),
    fault(
        "places/an-owner-waits-behind-a-guest-of-a-group",
        "People.share_of",
        code("any(A for name in names)", "any(A for name in names[:1])"),
        "tests/bot/runs/test_shares.py::test_an_owner_who_writes_behind_a_guest_in_a_group_does_not_wait_for_the_guests_places",
    ),
    fault(
        "places/jobs-of-a-guest-fill-the-background",
        "Shares.free",
        code("A and who != BACKGROUND and B", "A and not who.startswith(BACKGROUND) and B"),
        "tests/bot/runs/test_shares.py::test_jobs_of_one_guest_do_not_fill_the_background",
    ),
    fault(
        "guests/files-go-before-it-is-said",
        "RoomGuard.make_room",
        code("await self._disk.tell(name)", "await run(self._delete, going)"),
        "tests/bot/runs/test_guest_disk.py::test_who_dies_while_files_are_deleted_has_told_of_it_before",
    ),
    fault(
        "guests/what-a-running-turn-names-goes",
        "Reads.files_named",
        text("inbox.state IN ('taken','steering')", "inbox.state IN ('steering')"),
        "tests/bot/runs/test_guest_disk.py::test_what_a_running_turn_names_stays_and_what_does_not_fit_is_noted",
    ),
    fault(
        "guests/take-the-last-of-the-disk",
        "GuestDisk.check_free",
        code("A - B < C", "A < C"),
        "tests/bot/runs/test_guest_disk.py::test_no_file_of_a_guest_takes_the_last_of_the_disk",
    ),
)
