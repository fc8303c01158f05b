"""Set-up scripts and configuration."""

from tests.mutants import Fault, code, fault, text

_RELOAD = "tests/bot/reload/test_reload.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "first-steps/somebody-elses-command-is-replaced",
        "scripts/link",
        text('if [ ! -e "$folder/hark" ] && ', "if "),
        "tests/packaging/test_setup.py::test_where_no_link_can_be_the_line_to_copy_is_said",
    ),
    fault(
        "first-steps/tools-of-what-is-made-anew",
        "scripts/setup",
        text("    PATH=${path%:}", "    :"),
        "tests/packaging/test_setup.py::test_an_activated_environment_is_made_anew",
    ),
    fault(
        "first-steps/a-copy-has-its-name-too-early",
        "copy_of",
        code("A.with_name(f'.{A.name}.part')", "A"),
        "tests/bot/cli/test_backup.py::test_no_file_is_replaced_and_without_a_store_there_is_nothing",
    ),
    fault(
        "first-steps/the-log-is-not-copied",
        "copy_of",
        code("_copy(A, B)", "shutil.copy(path, B)"),
        "tests/bot/cli/test_backup.py::test_a_copy_beside_a_service_has_what_only_the_log_has",
    ),
    fault(
        "config/a-link-leads-around",
        "_is_same",
        code("A == B or A.samefile(B)", "str(A) == str(B)"),
        "tests/bot/config/test_variables.py::test_the_same_folder_mounted_or_spelled_otherwise",
    ),
    fault(
        "reload/a-replaced-file-not-noticed",
        "_sign",
        code("(A.st_ino, A.st_size, A.st_mtime_ns)", "(A.st_dev, A.st_uid, 0)"),
        f"{_RELOAD}a_file_that_an_editor_has_replaced_is_noticed_and_each_key_is_said_once",
    ),
    fault(
        "reload/new-secrets-unknown",
        "Reload.again",
        code("A.redactor.learn", "list"),
        f"{_RELOAD}new_secrets_are_kept_out_of_everything",
    ),
)
