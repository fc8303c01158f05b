"""The restart, and what a running service takes over of a changed configuration."""

from tests.mutants import Fault

_RELOAD = "tests/bot/reload/test_reload.py::test_"
_KEYS = ("tests/bot/reload/test_every_key.py::test_every_key_takes_effect_or_is_said_to_need_a_restart",)
_COMMAND = "tests/bot/reload/test_config_command.py::test_"
_FILE = "tests/bot/config/test_file.py::test_"
_PROCESS = "tests/bot/cli/test_restart.py::test_"
_WIRE = ("tests/wire/test_channel_reload.py::test_an_adapter_is_replaced_in_the_middle_of_a_conversation",)

FAULTS = (
    Fault("reload/a-section-forgotten", "Reload._apply", "specs.compaction = config.compaction.rules()", "pass", _KEYS),
    Fault("reload/rooms-keep-their-tools", "Rooms.refurnish", "self._kept.clear()", "pass", _KEYS),
    Fault(
        "reload/said-to-take-effect-and-does-not",
        "is_live",
        "_is_below(path, LIVE) and not _is_below(path, STARTED)",
        "not _is_below(path, STARTED)",
        _KEYS,
    ),
    Fault(
        "reload/approvers-at-the-start-alone",
        "Reload._apply",
        "config.approvals.approvers, config.queue",
        "self.askers.approvers, config.queue",
        _KEYS,
    ),
    Fault(
        "reload/stop-words-at-the-start-alone",
        "Reload._apply",
        "self.routing.registry.stop_by(config.queue.stop_words)",
        "pass",
        _KEYS,
    ),
    Fault(
        "reload/rules-of-sending-at-the-start-alone",
        "Reload._begin_anew",
        "await self.runs.store.settings.deny(denied(self.config.send_policy))",
        "pass",
        _KEYS,
    ),
    Fault(
        "reload/half-of-a-configuration",
        "merged",
        "return running\n",
        "pass\n",
        (f"{_RELOAD}what_names_a_provider_that_needs_a_restart_waits_with_it",),
    ),
    Fault(
        "reload/read-while-it-is-written",
        "Reload.watch",
        " and found == before",
        "",
        (f"{_RELOAD}a_file_that_is_being_written_is_read_when_it_is_whole",),
    ),
    Fault(
        "reload/a-broken-file-said-again",
        "ConfigFile._note",
        "before[file] if file in before else _sign(file)",
        "None",
        (f"{_RELOAD}a_broken_file_changes_nothing_and_is_said_once",),
    ),
    Fault(
        "reload/files-of-a-broken-file-forgotten",
        "ConfigFile.load",
        "error.files or (*self.seen,)",
        "()",
        (f"{_RELOAD}what_stands_elsewhere_is_watched_too",),
    ),
    Fault(
        "reload/a-replaced-file-not-noticed",
        "_sign",
        "return found.st_ino, found.st_size, found.st_mtime_ns",
        "return found.st_dev, found.st_uid, 0",
        (f"{_RELOAD}a_file_that_an_editor_has_replaced_is_noticed_and_each_key_is_said_once",),
    ),
    Fault(
        "reload/read-by-commands",
        "Reload.again",
        "running = self.config  #",
        "pass  #",
        (f"{_RELOAD}a_file_that_commands_could_read_waits_for_the_restart_that_hides_it",),
    ),
    Fault(
        "reload/new-secrets-unknown",
        "Reload.again",
        "known.redactor.learn(",
        "list(",
        (f"{_RELOAD}new_secrets_are_kept_out_of_everything",),
    ),
    Fault(
        "reload/owners-for-ever",
        "People.configure",
        "if one in self._made",
        "if True",
        (f"{_RELOAD}who_becomes_an_owner_is_one_with_the_next_message_and_who_was_one_is_none",),
    ),
    Fault(
        "reload/the-former-adapter-goes-on",
        "Reload._exchange",
        "await one.channel.stop_intake()",
        "pass",
        _WIRE,
    ),
    Fault("reload/calls-cut", "Outbox.exchange", "await asyncio.wait([", "break  # ([", _WIRE),
    Fault("reload/the-prompt-stays", "Accounts.exchange", 'self.__dict__.pop("rules", None)', "pass", _WIRE),
    Fault(
        "reload/all-channels-begin-anew",
        "Reload._apply",
        "if section != before.channels.sections()[name]:",
        'if name != "console":',
        _KEYS,
    ),
    Fault(
        "restart/waits-for-ever",
        "Restart._wait",
        "while self.left and not",
        "while not",
        (f"{_COMMAND}what_runs_is_waited_for_and_not_for_ever",),
    ),
    Fault(
        "restart/not-waited-for",
        "Restart._wait",
        "while self.left and not (self.lanes.idle and self.outbox.idle):",
        "while False:",
        (f"{_COMMAND}what_runs_is_waited_for_and_not_for_ever",),
    ),
    Fault(
        "restart/back-again-and-again",
        "Restarts.answer",
        'db.execute("DELETE FROM kv WHERE scope=?", (_SCOPE,))',
        "pass",
        (f"{_PROCESS}the_process_is_replaced_and_says_once_that_it_is_back",),
    ),
    Fault(
        "restart/forgotten-in-a-crash",
        "Restarts.ask",
        'rows.set_value(db, _SCOPE, str(seq), "")',
        "pass",
        (f"{_PROCESS}a_crash_between_the_command_and_the_restart_is_answered_by_the_next_start",),
    ),
    Fault(
        "restart/without-its-secrets",
        "main",
        "sys.orig_argv[1:]], file.environ)",
        "sys.orig_argv[1:]], os.environ)",
        (f"{_PROCESS}the_process_is_replaced_and_says_once_that_it_is_back",),
    ),
    Fault(
        "restart/into-a-broken-configuration",
        "Restart._wait",
        "if obstacle := await self.obstacle():",
        'if obstacle := "":',
        (f"{_COMMAND}a_configuration_that_breaks_while_a_restart_waits_ends_it_with_a_word",),
    ),
    Fault(
        "restart/into-another-store",
        "Restart.obstacle",
        "return _MOVED if new.state != self.config.state else",
        "return",
        (f"{_COMMAND}a_restart_with_a_broken_configuration_is_refused_with_the_reason",),
    ),
    Fault(
        "config-command/secrets-in-a-chat",
        "_set",
        "if hidden or _ELSEWHERE.search(value):",
        "if False:",
        (f"{_COMMAND}no_secret_and_nothing_that_stands_elsewhere_is_set_in_a_chat",),
    ),
    Fault(
        "config-file/written-though-it-would-not-load",
        "ConfigFile.change",
        "self.read(after)",
        "pass",
        (f"{_FILE}what_would_not_load_is_refused_and_changes_nothing",),
    ),
    Fault(
        "config-file/a-link-replaced",
        "ConfigFile.change",
        "self.path.resolve()",
        "self.path",
        (f"{_FILE}the_mode_stays_and_a_link_too_and_a_new_file_is_for_its_owner",),
    ),
    Fault(
        "config-file/lists-moved",
        "_indents",
        "offset = deeper",
        "pass",
        (f"{_FILE}lists_are_indented_as_they_are",),
    ),
)
