"""What the configuration says of beats, what they cost, and how what they write into memory is marked."""

from tests.mutants import Fault

_CONFIG = "tests/bot/config/test_background.py::test_"
_BEATS = "tests/bot/config/test_choose_model.py::TestBeats::test_"
_MARKS = "tests/agent/tools/test_files.py::test_"
_PRICE = "tests/agent/models/test_contract.py::test_"

FAULTS = (
    Fault(
        "heartbeat-config/no-budget-reads-as-a-budget",
        "_to_budget",
        "if not found or not amount:",
        "if not found:",
        (f"{_CONFIG}a_mistake_is_one_line",),
    ),
    Fault(
        "heartbeat-config/money-counts-as-tokens",
        "_to_budget",
        '"tokens" if found["tokens"] else "USD"',
        '"tokens"',
        (f"{_CONFIG}budgets",),
    ),
    Fault(
        "heartbeat-config/a-bare-number-is-an-interval",
        "_to_interval",
        'return timedelta(0) if value in (0, "0")',
        "return timedelta(minutes=value) if isinstance(value, int)",
        (f"{_CONFIG}a_mistake_is_one_line", f"{_CONFIG}intervals"),
    ),
    Fault(
        "heartbeat-config/beats-in-sessions-of-jobs",
        "_check_session",
        'key.base != value or key.kind == "job"',
        "False",
        (f"{_CONFIG}a_mistake_is_one_line",),
    ),
    Fault(
        "heartbeat-config/no-day-has-an-end",
        "bot/config/values.py",
        "partial(_to_minute, last=_DAY)",
        "_to_minute",
        (f"{_CONFIG}active_hours",),
    ),
    Fault(
        "heartbeat-config/money-without-a-price",
        "beat_model",
        'beat.daily_budget.unit == "USD" and chosen.price is None',
        "False",
        (f"{_BEATS}money_needs_the_price_of_the_model_that_beats",),
    ),
    Fault(
        "heartbeat-config/a-model-of-beats-without-its-provider",
        "Config.models",
        '(("heartbeat", "model"), self.heartbeat.model),',
        "",
        (f"{_CONFIG}a_mistake_is_one_line",),
    ),
    Fault(
        "heartbeat-config/check-passes-over-beats",
        "service_conflicts",
        "beating = beat_model(config, environ, chosen)",
        "beating = None",
        (f"{_BEATS}money_needs_the_price_of_the_model_that_beats",),
    ),
    Fault(
        "heartbeat-config/tokens-of-a-cache-paid-twice",
        "Price.cost",
        "usage.input - usage.cache_read - usage.cache_write",
        "usage.input",
        (f"{_PRICE}the_cost_of_tokens",),
    ),
    Fault(
        "heartbeat-config/free-caches-cost-as-input",
        "Price.cost",
        "self.input if self.cache_read is None else self.cache_read",
        "self.cache_read or self.input",
        (f"{_PRICE}the_cost_of_tokens",),
    ),
    Fault(
        "heartbeat-config/words-of-persons-marked",
        "marked",
        "if known[line.strip()]:",
        "if False:",
        (f"{_MARKS}lines_that_are_new_are_marked", f"{_MARKS}nothing_but_marks_is_added"),
    ),
    Fault(
        "heartbeat-config/code-unmarked",
        "marked",
        "elif not _DRAWN.fullmatch(line):",
        "elif not fence and not _DRAWN.fullmatch(line):",
        (f"{_MARKS}lines_that_are_new_are_marked",),
    ),
    Fault(
        "heartbeat-config/an-old-file-is-overwritten-unread",
        "Workspace.write_now",
        '(mode == "append" or change is not None)',
        'mode == "append"',
        (f"{_MARKS}all_ways_of_writing_are_marked_in_the_background_alone",),
    ),
    Fault(
        "heartbeat-config/tools-do-not-know-of-the-background",
        "Pipeline._context",
        "background=spec.background",
        "background=False",
        ("tests/bot/runs/test_specs.py::test_memory_is_marked_that_beats_and_jobs_write",),
    ),
)
