"""Sandbox: what holds commands in, the proof that it does, which command gets how much, and the web."""

from tests.mutants import Fault, code, fault, text

_FILTERS = "tests/agent/sandbox/test_filters.py::test_"
_PROOF = "tests/agent/sandbox/test_proof.py::test_"

FAULTS: tuple[Fault, ...] = (
    fault(
        "sandbox/network-shared",
        "Bubblewrap.launch",
        code("A.level == 'network'", "True"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/room-written-by-looks",
        "Bubblewrap.launch",
        code("'--bind' if A else '--ro-bind'", "'--bind'"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/all-files-seen",
        "Bubblewrap.launch",
        code(
            "[*_OWN, *_who(), A, *_system(self.program), *_FOLDERS]",
            "[*_OWN, *_who(), A, '--ro-bind', '/', '/', *_FOLDERS]",
        ),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/kept-files-written",
        "_inner",
        text("--ro-bind", "--bind"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/no-filter-of-calls",
        "Bubblewrap.launch",
        code("filters.sockets(A, looks=B)", "filters.sockets(True, looks=B)"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/outlives-its-gate",
        "_OWN",
        code("'--die-with-parent'"),
        "tests/agent/sandbox/test_ends.py::test_and_with_its_gate",
    ),
    fault(
        "sandbox/variables-lead-bubblewrap",
        "Bubblewrap.launch",
        code("Launch(..., environment={})", "Launch(..., environment=view.environment)"),
        "tests/agent/sandbox/test_inside.py::test_variables_reach_the_command_and_nothing_before_it",
    ),
    fault(
        "sandbox/sandlock-hidden-files-shown",
        "_readable",
        code("any(os.path.samestat(A, B) for B in C)", "False"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/sandlock-attributes-changed",
        "Sandlock.launch",
        code("filters.attributes()", "filters.sockets(False)"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/variables-lead-sandlock",
        "Sandlock.launch",
        code("Launch(..., environment={})", "Launch(..., environment=view.environment)"),
        "tests/agent/sandbox/test_inside.py::test_variables_reach_the_command_and_nothing_before_it",
    ),
    fault(
        "sandbox/calls-of-32-bits",
        "_program",
        code("(_EQUAL, 1, 0, _ARCHS[A])", "(_EQUAL, 1, 1, _ARCHS[A])"),
        f"{_FILTERS}calls_of_another_kind_of_machine_fail",
    ),
    fault(
        "sandbox/user-namespaces",
        "_ALWAYS",
        code("Rule('unshare', errno.EPERM, 0, _ANY_BIT, _NEW_NAMESPACES | _NEW_TIME)"),
        f"{_FILTERS}each_call_gets_what_it_should",
    ),
    fault(
        "sandbox/unknown-calls",
        "_program",
        code("code.append((_RETURN, 0, 0, _FAIL | errno.ENOSYS))", "code.append((_RETURN, 0, 0, _ALLOW))"),
        f"{_FILTERS}what_is_not_allowed_is_not_known",
    ),
    fault(
        "sandbox/leases",
        "_ALWAYS",
        code("Rule('fcntl', errno.EINVAL, 1, unless=_FCNTL)"),
        f"{_FILTERS}arguments_decide_about_some",
    ),
    fault(
        "sandbox/datagrams-of-pairs",
        "_ALWAYS",
        code("Rule('socketpair', errno.EACCES, 1, unless=_STREAMS)"),
        f"{_FILTERS}arguments_decide_about_some",
    ),
    fault(
        "sandbox/files-that-run-as-the-service",
        "_ALWAYS",
        code("(2, _CREATES)", "(2, 0)"),
        f"{_FILTERS}arguments_decide_about_some",
    ),
    fault(
        "sandbox/other-protocols-of-the-kernel",
        "_WITH_NETWORK",
        code("Rule('socket', errno.EACCES, 2, _AT_LEAST, 1, only_with=A)"),
        f"{_FILTERS}each_call_gets_what_it_should",
    ),
    fault(
        "sandbox/proc-written",
        "_inner",
        code("[*_WITHIN, '--remount-ro', '/proc']", "[*_WITHIN]"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/signals-beneath-landlock",
        "_landlock",
        code("(A * 3)(_FILES, _NETWORK, _SCOPES)", "(A * 3)(_FILES, _NETWORK, 0)"),
        f"{_PROOF}where_the_machine_lets_it_each_holds",
    ),
    fault(
        "sandbox/work-beneath-landlock",
        "Permission.of",
        code("A if A in self.held else 'host'", "A"),
        "tests/agent/tools/test_permission.py::test_what_runs_where_what_is_asked_and_what_is_refused",
    ),
    fault(
        "sandbox/nobody-to-ask-waits",
        "Requests.put",
        code("A.alone and B", "False"),
        "tests/bot/approvals/test_nobody_to_ask.py::test_it_is_refused_at_once",
    ),
    fault(
        "sandbox/repositories-made-meanwhile",
        "Permission.of",
        code("tuple(on_host()) if A else ()", "()"),
        "tests/agent/tools/test_background.py::test_a_repository_made_while_a_command_could_write_is_asked_about",
    ),
    fault(
        "sandbox/forgotten-with-the-command",
        "Background.made_meanwhile",
        code("(A & B).union(*C)", "frozenset().union(*C)"),
        "tests/agent/tools/test_background.py::test_a_repository_made_while_a_command_could_write_is_asked_about",
    ),
    fault(
        "sandbox/kept-files-replaced-beside-a-command",
        "_replace",
        code("A in KEPT and B and C", "False"),
        "tests/agent/tools/test_background.py::test_what_is_kept_stays_so_when_hark_changes_it_meanwhile",
    ),
    fault(
        "sandbox/folders-above-a-worktree-renamed",
        "kept_of",
        code("(*repositories, *A)", "repositories"),
        "tests/agent/sandbox/test_kept.py::test_a_folder_above_a_repository_cannot_be_renamed",
    ),
    fault(
        "sandbox/folder-by-its-name",
        "ExecTool._run",
        code("partial(GatedProcess, A, opened)", "partial(GatedProcess, A, folder)"),
        "tests/agent/sandbox/test_levels.py::test_a_command_starts_in_the_folder_that_was_looked_at",
    ),
    fault(
        "sandbox/links-among-what-leads-git-kept",
        "_leading",
        code("[A for A in B if not A.is_symlink()]", "B"),
        "tests/agent/sandbox/test_kept.py::test_what_is_kept_shows_nothing_that_a_link_names",
    ),
    fault(
        "sandbox/undecided-calls-run",
        "ExecTool._run",
        code("B is not None and (C.decision is None or A)", "B is not None and C.decision is not None and A"),
        "tests/agent/tools/test_permission.py::test_what_nobody_has_decided_does_not_run",
    ),
    fault(
        "sandbox/decisions-at-any-level",
        "ExecTool._ask",
        code("(A.level, self._confinement.name)", "(self._confinement.name,)"),
        "tests/agent/sandbox/test_levels.py::test_a_decision_counts_at_its_level_and_in_its_sandbox",
    ),
    fault(
        "sandbox/decisions-in-any-sandbox",
        "ExecTool._ask",
        code("(A.level, self._confinement.name)", "(A.level,)"),
        "tests/agent/sandbox/test_levels.py::test_a_decision_counts_at_its_level_and_in_its_sandbox",
    ),
    fault(
        "sandbox/paths-end-their-string",
        "_rule",
        code("A.replace('\"', '\\\\\"')", "A"),
        "tests/agent/sandbox/test_seatbelt.py::test_a_path_cannot_say_more_than_itself",
    ),
    fault(
        "sandbox/seatbelt-written-by-looks",
        "profile",
        code("() if B.level == 'look' else (A,)", "(A,)"),
        "tests/agent/sandbox/test_seatbelt.py::test_nothing_is_allowed_but_what_is_named",
    ),
    fault(
        "sandbox/probe-reads-no-secret",
        "prove",
        code("_PROBE.read_text()", "_PROBE.read_text().replace('read, secret)', \"read, '/-')\")"),
        f"{_PROOF}each_way_out_is_noticed",
    ),
    fault(
        "sandbox/probe-follows-no-link",
        "prove",
        code(
            "_PROBE.read_text()", "_PROBE.read_text().replace('by_link, temporary, os', 'lambda *_: read(\"/-\"), os')"
        ),
        f"{_PROOF}each_way_out_is_noticed",
    ),
    fault(
        "files_tools/links-followed",
        "_FLAGS",
        code("os.O_NOFOLLOW | os.O_CLOEXEC", "os.O_CLOEXEC"),
        "tests/agent/tools/test_escapes.py::test_no_path_leads_out",
    ),
    fault(
        "files_tools/walk-follows-links",
        "_walk",
        code("_FOLDER", "os.O_RDONLY | os.O_DIRECTORY"),
        "tests/agent/tools/test_escapes.py::test_a_folder_that_became_a_link_is_not_gone_into",
    ),
    fault(
        "files_tools/git-by-one-spelling",
        "is_git",
        code("A.casefold().rstrip('. ')", "A"),
        "tests/agent/tools/test_escapes.py::test_nothing_is_written_that_git_obeys",
    ),
    fault(
        "skills/new-one-is-used-unseen",
        "Shelf._why_not",
        code("A == B.digest", "A in (None, B.digest)"),
        "tests/bot/skills/test_skills.py::test_without_skills_nothing_is_said_and_the_start_is_noted",
    ),
    fault(
        "web/private-at-any-port",
        "Reach.addresses",
        code("(A, B) in self.private", "A in dict(self.private)"),
        "tests/agent/web/test_reach.py::test_a_private_host_is_read_where_the_operator_named_it_with_its_port",
    ),
    fault(
        "web/azure-let-in",
        "_CLOUDS",
        text("168.63.129.16/32 100.100.100.200/32", "100.100.100.200/32"),
        "tests/agent/web/test_reach.py::test_a_name_with_such_an_address_is_refused[168.63.129.16]",
    ),
    fault(
        "web/resolved-again-to-connect",
        "GuardedTransport.handle_async_request",
        code("A.copy_with(host=B)", "A"),
        "tests/agent/web/test_reach.py::test_a_public_address_is_connected_to_exactly",
    ),
    fault(
        "web/certificate-for-the-address",
        "GuardedTransport.handle_async_request",
        code("{**B.extensions, 'sni_hostname': A}", "{**B.extensions, 'sni_hostname': address}"),
        "tests/agent/web/test_fetch.py::test_the_certificate_is_checked_for_the_name",
    ),
    fault(
        "web/redirects-unchecked",
        "Fetcher.get",
        code(
            "httpx2.AsyncClient(..., trust_env=False)",
            "httpx2.AsyncClient(..., trust_env=False, follow_redirects=True)",
        ),
        "tests/agent/web/test_fetch.py::test_redirects_are_followed_to_the_end",
    ),
    fault(
        "web/fence-left",
        "fenced",
        code("harmless(A).strip", "A.strip"),
        "tests/agent/web/test_tools.py::test_no_text_leaves_its_fence",
    ),
    fault(
        "web/for-guests",
        "GUEST",
        code("'message'", "*('message', 'web_fetch')"),
        "tests/bot/runs/test_web.py::test_guests_do_not_have_them_unless_they_are_named",
    ),
    fault(
        "bounds/a-command-begins-outside-of-its-group",
        "_move",
        code("A.write('0')", "A.write('')"),
        "tests/agent/sandbox/test_cgroup.py::test_a_group_is_there_before_the_command_and_gone_behind_it",
    ),
    fault(
        "bounds/groups-of-the-living-are-removed",
        "_is_left",
        code("_started(int(A)) != B", "True"),
        "tests/agent/sandbox/test_cgroup.py::test_groups_of_a_service_that_died_are_removed_and_those_of_a_living_one_stay",
    ),
)
