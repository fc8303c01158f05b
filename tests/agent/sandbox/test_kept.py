"""What of a room stays as it is: instruction files, what tools keep, and what leads git, however a command tries."""

import asyncio
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from agent.file_names import NAMES
from agent.sandbox.kept import KEPT_FOLDERS, Kept, kept_of, repositories
from agent.sandbox.proof import Setting, choose
from agent.tools.exec import ExecParameters
from tests.agent.sandbox.conftest import Run, git, held
from tests.agent.test_removal import deep
from tests.agent.tools.calls import outcome
from tests.agent.tools.commands import commands


def test_what_is_missing_is_made_so_that_nobody_else_can(room: Path) -> None:
    (room / "SOUL.md").write_text("mine")
    kept = kept_of(room, NAMES)
    assert kept == Kept(files=tuple(room / name for name in (*NAMES, *KEPT_FOLDERS, "memory")))
    for name in NAMES:
        status = (room / name).lstat()
        assert stat.S_ISREG(status.st_mode)
        assert name == "SOUL.md" or (stat.S_IMODE(status.st_mode), status.st_size) == (0o600, 0)
    assert (room / "SOUL.md").read_text() == "mine"
    assert all((room / name).is_dir() for name in KEPT_FOLDERS)
    assert kept_of(room, NAMES) == kept


@pytest.mark.parametrize("target", ["../outside", "nowhere", "/etc/passwd"])
def test_a_link_in_its_place_is_refused(room: Path, target: str) -> None:
    (room.parent / "outside").write_text("kept")
    for file in (*NAMES, *KEPT_FOLDERS):
        (room / file).symlink_to(target)
        with pytest.raises(
            OSError, match=rf"{file} in the workspace is a link.*, so that it cannot be kept; replace it"
        ):
            kept_of(room, NAMES)
        shutil.rmtree(room)
        room.mkdir()
    assert not (room / "nowhere").exists()
    assert (room.parent / "outside").read_text() == "kept"


async def test_then_nothing_runs_that_may_write(run: Run, room: Path) -> None:
    (room / "AGENTS.md").symlink_to("other.md")
    said = await run("echo evil >> touched", needs="work")
    assert said.startswith("The command could not be started: AGENTS.md in the workspace is a link or no file")
    assert os.listdir(room) == ["AGENTS.md"]
    assert await run("echo fine", needs="look") == "[exit code 0]\nfine\n", "what only looks needs nothing kept"


def test_a_folder_in_place_of_a_file_is_refused(room: Path) -> None:
    (room / "USER.md").mkdir()
    with pytest.raises(OSError, match=r"USER\.md in the workspace is a link or no file"):
        kept_of(room, NAMES)


def test_repositories_are_found_wherever_they_lie(repository: Path) -> None:
    room = repository
    git(room, "init", "-q", "deep/er/nested")
    git(room, "worktree", "add", "-q", "tree")
    (room / "linked").mkdir()
    (room / "linked/.git").symlink_to("../deep/er/nested/.git")
    kept = kept_of(room, ())
    nested = room / "deep/er/nested/.git"
    assert set(kept.repositories) == {room / ".git", nested}
    assert set(kept.files) == {room / "tool-results", room / "media", room / "memory", room / "tree/.git"}
    always = {"config", "config.worktree", "hooks", "info", "commondir"}
    assert {path.name for path in kept.leading if path.parent == nested} == always
    assert {path.name for path in kept.leading if path.parent == room / ".git"} == always | {"worktrees"}
    assert git(room, "status", "--short", "--branch").startswith("## main\n")
    assert len(git(room, "worktree", "list").splitlines()) == 2


LINKS = {
    ".git": "ln -s ../config.yaml .git",
    "below": "mkdir -p a; ln -s ../../config.yaml a/.git",
    "settings": "mkdir -p a/.git; ln -s ../../../config.yaml a/.git/config",
    "modules": "mkdir -p .git; ln -s ../../state .git/modules",
    "hooks": "mkdir -p .git; ln -s ../../state .git/hooks",
    "commondir": "mkdir -p .git; ln -s ../../state .git/commondir",
}


@pytest.mark.parametrize("what", LINKS)
async def test_what_is_kept_shows_nothing_that_a_link_names(run: Run, room: Path, what: str) -> None:
    """The link is made by one command, and the next one looks."""
    (room.parent / "config.yaml").write_text("haddock")
    (room.parent / "state").mkdir()
    (room.parent / "state/key").write_text("haddock")
    await run(LINKS[what], needs="work")
    said = await run("cat .git a/.git a/.git/config .git/*/* ../config.yaml ../state/*; ls -R ..; true", needs="work")
    assert said.startswith("[exit code 0]"), "and it does not stop what comes behind it"
    assert "haddock" not in said
    assert os.listdir(room.parent / "state") == ["key"]


def test_git_works_on_with_what_was_made_for_it(repository: Path) -> None:
    kept_of(repository, ())
    (repository / "two.txt").write_text("two\n")
    git(repository, "add", "two.txt")
    git(repository, "commit", "-q", "-m", "Second")
    git(repository, "branch", "other")
    git(repository, "gc", "-q")
    git(repository, "fsck")
    git(repository, "clone", "-q", ".", "../copy")
    assert len(git(repository.parent / "copy", "log", "--oneline").splitlines()) == 2
    assert not (repository.parent / "copy/.git/commondir").exists()


HOSTILE = {
    "config": "printf '[core]\\nfsmonitor = touch {mark}\\n' >> .git/config",
    "git config": "git config core.fsmonitor 'touch {mark}'",
    "config by rename": "printf '[core]\\nfsmonitor = touch {mark}\\n' > c; mv c .git/config",
    "config by a link": "rm -f .git/config; ln -s ../evil/config .git/config",
    "a hook": "printf '#!/bin/sh\\ntouch {mark}\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "all hooks": "mv .git/hooks h; cp -r evil/hooks .git/hooks",
    "hooks by a link": "rm -rf .git/hooks; ln -s ../evil/hooks .git/hooks",
    "another folder": "echo ../evil > .git/commondir",
    "another folder by rename": "echo ../evil > c; mv c .git/commondir",
    "another repository": "mv .git old; cp -r evil .git",
    "a file for it": "mv .git old; echo 'gitdir: evil' > .git",
    "a link for it": "rm -rf .git; ln -s evil .git",
    "settings of the tree": "git config extensions.worktreeConfig true; cp evil/config .git/config.worktree",
    "the folder above": "cd ..; mv room old; mkdir room; cp -r old/evil room/.git",
}


async def test_no_command_leads_the_git_of_others(run: Run, repository: Path) -> None:
    """A repository of the command's own lies beside it, complete, with settings and hooks that leave a mark outside."""
    mark, whole = repository.parent / "mark", repository.parent / "whole"
    _evil(repository, mark)
    shutil.copytree(repository, whole, symlinks=True)
    every = list(HOSTILE.values())
    for attempt in (*every, "; ".join(every)):
        await run(attempt.format(mark=mark), needs="work")
        await asyncio.to_thread(_use, repository)
        assert not mark.exists(), attempt
        shutil.rmtree(repository)
        shutil.copytree(whole, repository, symlinks=True)


async def test_a_folder_above_a_repository_cannot_be_renamed(run: Run, repository: Path) -> None:
    git(repository, "init", "-q", "deep/er")
    git(repository, "worktree", "add", "-q", "tree")
    await run("mv deep d; mkdir -p deep; mv deep/er deep/e; mv tree t", needs="work")
    assert await asyncio.to_thread((repository / "deep/er/.git/config").exists)
    assert await asyncio.to_thread((repository / "tree/.git").exists)


async def test_a_repository_of_another_name_is_kept_where_a_file_leads_to_it(run: Run, repository: Path) -> None:
    """Worktrees of a bare repository, and `--separate-git-dir`; a file that leads anywhere else makes nothing there."""
    room = repository.parent / "room"
    git(room, "clone", "-q", "--bare", ".", "deep/bare")
    git(room / "deep/bare", "worktree", "add", "-q", str(room / "tree"))
    git(room, "init", "-q", "--separate-git-dir", "apart", "work")
    for name, target in (("out", "../.."), ("plain", "../work"), ("nowhere", "x")):
        (room / name).mkdir()
        (room / name / ".git").write_text(f"gitdir: {target}\n")
    attempts = (f"echo evil >> {one}/config; echo evil > {one}/hooks/evil" for one in ("deep/bare", "apart"))
    await run("; ".join((*attempts, "mv apart a; mv deep d")), needs="work")
    for one in (room / "deep/bare", room / "apart"):
        assert "evil" not in await asyncio.to_thread((one / "config").read_text)
        assert "evil" not in os.listdir(one / "hooks")
    assert os.listdir(room / "work") == [".git"]
    assert git(room / "tree", "status", "--short") == git(room / "work", "status", "--short") == ""


def test_a_folder_that_cannot_be_looked_into_is_kept_as_a_whole(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that owns it could open it again, and change what leads git in there."""
    (room / "deep/shut").mkdir(parents=True)
    (room / "deep/shut").chmod(0)
    if os.geteuid() == 0:  # who can look anywhere
        monkeypatch.setattr("agent.sandbox.kept._can_look", lambda name, above: name != "shut")
    kept = kept_of(room, ())
    assert (kept.files[-1], kept.above) == (room / "deep/shut", (room / "deep",))
    (room / "deep/shut").chmod(0o700)


def _use(room: Path) -> None:
    for words in (["status"], ["-c", "user.name=B", "commit", "-q", "--allow-empty", "-m", "x"], ["diff"]):
        subprocess.run(["git", *words], cwd=room, check=False, capture_output=True)


def test_such_a_repository_does_lead_git(repository: Path) -> None:
    """What the test above looks for happens where nothing is kept."""
    for what in ("config", "a hook", "another folder", "a link for it"):
        mark = repository.parent / "mark"
        _evil(repository, mark)
        subprocess.run(["/bin/sh", "-c", HOSTILE[what].format(mark=mark)], cwd=repository, check=True)
        _use(repository)
        assert mark.exists(), what
        mark.unlink()


def _evil(room: Path, mark: Path) -> None:
    subprocess.run(["cp", "-r", ".git", "evil"], cwd=room, check=True)
    with (room / "evil/config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = touch {mark}\n")
    hook = room / "evil/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)


async def test_instruction_files_stay_and_others_do_not(run: Run, room: Path) -> None:
    (room / "AGENTS.md").write_text("mine")
    (room / "tool-results").mkdir()
    (room / "tool-results/one.txt").write_text("mine")
    attempts = "; ".join(
        f"echo evil > {name}; rm -rf {name}; mv other.txt {name}; mv {name} away"
        for name in ("AGENTS.md", "HEARTBEAT.md", "tool-results", "tool-results/one.txt", "media")
    )
    await run(
        f"echo evil > other.txt; {attempts}; ln -s AGENTS.md link; echo evil > link; echo fine > new.txt", needs="work"
    )
    assert (room / "AGENTS.md").read_text() == (room / "tool-results/one.txt").read_text() == "mine"
    assert (room / "HEARTBEAT.md").read_text() == ""
    assert os.listdir(room / "tool-results") == ["one.txt"]
    assert (room / "new.txt").read_text() == "fine\n"


async def test_what_is_hidden_is_not_there(room: Path, name: Setting) -> None:
    (room / "state").mkdir()
    (room / "state/key").write_text("haddock")
    (room / "config.yaml").write_text("haddock")
    hidden = (room / "state", room / "config.yaml", room / "missing")
    tool = commands(room, sandbox=name, in_sandbox="allow", hidden=hidden).exec
    sandbox = choose(name).sandbox
    assert sandbox is not None
    for needs in sandbox.levels:
        parameters = ExecParameters.model_validate(
            {"command": "cat config.yaml state/key; ls state; echo x > state/new; echo x > config.yaml", "needs": needs}
        )
        said = (await outcome(tool, parameters)).text
        assert "haddock" not in said
        if name != "sandlock":  # Landlock grants the names of a whole folder
            assert "key\n" not in said.replace("state/key", "")
    assert (room / "config.yaml").read_text() == (room / "state/key").read_text() == "haddock"
    assert os.listdir(room / "state") == ["key"]


async def test_beneath_landlock_a_link_is_granted_nothing(room: Path) -> None:
    """Where something is hidden, each entry of the room is granted by itself; what a link names is not."""
    outside = room.parent / "outside"
    outside.mkdir()
    (outside / "key").write_text("haddock")
    for name in ("people", "notes"):
        (room / name).mkdir()
        (room / name / "key").write_text(f"{name} haddock")
    (room / "link").symlink_to(outside)
    (room / "file").symlink_to(outside / "key")
    (room / "new.txt").write_text("fine")
    tool = commands(room, sandbox=held("sandlock")).exec
    command = "cat people/key link/key file ../outside/key people/../people/key; cat new.txt notes/key; ls"
    said = (await outcome(tool, ExecParameters(command=command, needs="look"))).text
    assert said.count("haddock") == 1
    assert "notes haddock" in said
    assert "fine" in said
    assert "new.txt\n" in said


@pytest.mark.parametrize("depth", [1_200, 2_500])
def test_folders_that_lie_too_deep_are_no_crash(room: Path, depth: int) -> None:
    deep(room / "d", depth)
    (room / "one/.git").mkdir(parents=True)
    with pytest.raises(OSError, match="lie too deep in each other"):
        kept_of(room, ())
    assert repositories(room).keys() == {room / "one/.git"}
    subprocess.run(["rm", "-rf", str(room / "d")], check=True)
    assert kept_of(room, ()).repositories == (room / "one/.git",)


def test_repositories_of_any_kind_are_seen_except_those_of_other_rooms(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "tree")
    (repository / "linked").mkdir()
    (repository / "linked/.git").symlink_to("../nowhere")
    git(repository, "init", "-q", "people/ann/own")
    assert repositories(repository).keys() == {repository / name / ".git" for name in ("", "tree", "linked")}
