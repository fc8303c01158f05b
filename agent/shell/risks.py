"""Notes for people who decide about a command, by the names of programs. Nothing is allowed or refused by them."""

import re
import unicodedata
from collections.abc import Sequence

from agent.shell.words import a_set

_ELEVATING = a_set("sudo doas su runuser pkexec run0 gosu")
_NETWORK = a_set("curl wget nc ncat netcat telnet ftp sftp scp ssh rsync socat dig nslookup host whois ping")
_DOWNLOADS = a_set("npx bunx uvx pipx pnpx")
_INSTALLS = re.compile(r"(pip3?|npm|pnpm|yarn|gem|cargo|apt|apt-get|dnf|yum|brew|apk|go|uv) (install|add|i|ci|get)\b")
_DEVICES = a_set("dd mkfs fdisk parted wipefs shred")
_ENDS = a_set("kill pkill killall shutdown reboot halt poweroff")


def risks_of(name: str, words: Sequence[str]) -> list[str]:
    """What is worth knowing about one command, in sentences."""
    options = "".join(word[1:] for word in words if word.startswith("-") and not word.startswith("--"))
    line = " ".join((name, *words[:2]))
    notes = {
        "Runs with other rights.": name in _ELEVATING,
        "Deletes recursively.": name == "rm" and (re.search("[rR]", options) or "--recursive" in words),
        "Deletes what it finds.": name == "find" and "-delete" in words,
        "Uses the network.": name in _NETWORK
        or (name == "git" and words[:1] and words[0] in ("push", "pull", "fetch", "clone", "ls-remote")),
        "Runs what it downloads.": name in _DOWNLOADS or bool(_INSTALLS.match(line)),
        "Writes to devices or whole disks.": name in _DEVICES or name.startswith("mkfs."),
        "Ends other programs.": name in _ENDS,
        "Throws away changes.": name == "git"
        and bool(
            re.search(r"--hard|--force|^git clean|^git checkout --| -f\b|^git push .*\+", " ".join((name, *words)))
        ),
        "Changes rights or owners.": name in ("chmod", "chown", "chgrp", "setfacl"),
    }
    return [note for note, holds in notes.items() if holds]


def hidden_characters(command: str) -> str:
    """A sentence when a person would not see what a shell sees."""
    for character in command:
        if character in "\t\n" or " " <= character <= "~":
            continue
        kind = unicodedata.category(character)
        if kind[0] in "CZ" or character in "\u115f\u1160\u3164\uffa0\u2800\u034f" or 0xFE00 <= ord(character) <= 0xFE0F:
            name = unicodedata.name(character, f"U+{ord(character):04X}").lower()
            return f"It holds a character that cannot be seen: {name}."
    return ""
