"""What `hark security audit` finds, and how it ends."""

from tests.mutants import Fault

_AUDIT = "tests/bot/cli/test_audit.py::test_"
_FOUND = f"{_AUDIT}it_is_found"

FAULTS = (
    Fault(
        "audit/critical-is-a-warning",
        "audit",
        'return CRITICAL if "critical" in severities else WARNING',
        "return WARNING",
        (f"{_FOUND}[exec-full-open]",),
    ),
    Fault(
        "audit/open-doors-are-fine", "_open", 'if rules.policy == "open"', "if not rules", (f"{_FOUND}[open-policy]",)
    ),
    Fault(
        "audit/open-groups-are-fine",
        "_open",
        '(("dm", bot.dm), ("groups", bot.groups))',
        '(("dm", bot.dm),)',
        (f"{_FOUND}[open groups]",),
    ),
    Fault(
        "audit/wide-groups-are-fine",
        "_open_tools",
        "((at, bot.tools), *open_groups)",
        "((at, bot.tools),)",
        (f"{_FOUND}[open-tools]",),
    ),
    Fault(
        "audit/words-are-strong",
        "_gateway",
        "or _COMMON.search(token) ",
        "",
        (f"{_FOUND}[gateway-token-weak by a word]",),
    ),
    Fault("audit/bare-names-are-narrow", "_is_broad", "or arguments is None", "", (f"{_FOUND}[broad-rule]",)),
    Fault(
        "audit/shells-are-narrow",
        "_is_broad",
        "or bool(_RUN_ANYTHING.fullmatch(os.path.basename(binary)))",
        "",
        (f"{_FOUND}[broad-rule of a shell]",),
    ),
    Fault("audit/groups-may-read", "_others", "& 0o077", "& 0o007", (f"{_AUDIT}files_that_others_may_read",)),
    Fault(
        "audit/the-blocked-are-silent",
        "bot/cli/audit.py",
        "standing IN ('allowed','owner')",
        "standing<>'pending'",
        (f"{_AUDIT}the_state_folder_and_what_is_stored",),
    ),
    Fault(
        "audit/who-wrote-is-silent",
        "bot/cli/audit.py",
        "inbox.sender=person.sender AND accepted_at >= ?",
        "inbox.sender=person.name AND accepted_at >= ?",
        (f"{_AUDIT}the_state_folder_and_what_is_stored",),
    ),
    Fault(
        "audit/references-stand-in-the-clear",
        "_keys_in_the_clear",
        'or "${" in place.written',
        "",
        (f"{_AUDIT}nothing_above_a_note_is_fine",),
    ),
)
