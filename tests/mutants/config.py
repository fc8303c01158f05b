"""What a configuration may not say, and which folders it may not name."""

from tests.mutants import Fault

_CLI = "tests/bot/config/test_cli.py::test_"
_FOLDERS = "tests/bot/config/test_variables.py::test_"
_ASSUMED = "tests/bot/config/test_assumed.py::test_"

FAULTS = (
    Fault(
        "config/assumed-in-silence",
        "warnings",
        "yield from assumed(config)",
        "pass",
        (f"{_ASSUMED}the_check_says_it", "tests/bot/cli/test_doctor.py::test_each_key_and_model_is_asked_for_a_word"),
    ),
    Fault(
        "config/assumed-of-the-first-model-alone",
        "_specs",
        "[name for _, name in config.models() if name] + listed",
        "listed",
        (f"{_ASSUMED}a_model_of_an_unknown_provider",),
    ),
    Fault(
        "config/assumed-though-written",
        "assumed",
        "if not (known or settings.max_output):",
        "if not known:",
        (f"{_ASSUMED}what_is_written_is_not_missed",),
    ),
    Fault(
        "config/prices-missed-in-silence",
        "Prices.look_up",
        "filter(price_book.is_missing, looked_for)",
        "()",
        (f"{_ASSUMED}the_service_says_which_prices_it_does_not_find",),
    ),
    Fault(
        "config/short-tokens",
        "_check_token",
        "len(token) < _SHORTEST_TOKEN or ",
        "",
        ("tests/bot/config/test_load.py::TestMistakes::test_a_weak_token",),
    ),
    Fault(
        "config/commands-for-a-port-without-a-token",
        "service_conflicts",
        'config.tools.exec.security == "full" and config.gateway.token is None',
        "False",
        (f"{_CLI}check_says_what_run_says",),
    ),
    Fault(
        "config/check-says-less-than-run",
        "check",
        "cwd, service=True)",
        "cwd)",
        (f"{_CLI}check_says_what_run_says",),
    ),
    Fault(
        "config/nobody-answered-without-a-warning",
        "warnings",
        "for account, bot in section.bots().items() if section.enabled else ():",
        "for account, bot in ():",
        (f"{_CLI}a_channel_that_would_answer_nobody_is_a_warning",),
    ),
    Fault(
        "config/a-link-leads-around",
        "_is_same",
        "return one == other or one.samefile(other)",
        "return str(one) == str(other)",
        (f"{_FOLDERS}the_same_folder_mounted_or_spelled_otherwise",),
    ),
    Fault(
        "config/the-home-folder-is-a-workspace",
        "_kept",
        'yield Path(os.path.expanduser("~")), "the home folder"',
        "yield from ()",
        (f"{_FOLDERS}the_home_folder_by_any_name", f"{_FOLDERS}what_holds_the_home_folder"),
    ),
    Fault(
        "config/only-the-folder-itself-counts",
        "_holds",
        "for one in (inner, *inner.parents))",
        "for one in (inner,))",
        (f"{_FOLDERS}what_holds_the_home_folder",),
    ),
    Fault(
        "config/in-the-code-of-hark",
        "_problem",
        'for package in ("agent", "bot", "channels", "heartbeat")',
        "for package in ()",
        (f"{_FOLDERS}folders_of_the_system_and_of_hark",),
    ),
    Fault(
        "config/folders-of-the-system",
        "_kept",
        "(*_SYSTEM.split(), *_READ_BY_SYSTEM)",
        "()",
        (f"{_FOLDERS}folders_of_the_system_and_of_hark",),
    ),
    Fault(
        "config/defaults-are-never-looked-at",
        "_defaults",
        "    if problems:\n        raise ConfigError(problems)",
        "",
        (f"{_FOLDERS}a_link_where_the_default_is",),
    ),
    Fault(
        "config/a-tilde-is-the-default",
        "examine",
        'place.written == "~" and not place.is_text',
        "False",
        (f"{_FOLDERS}a_bare_tilde_is_nothing_in_yaml_and_no_folder",),
    ),
)
