"""Programs that behave as Claude Code, Codex CLI and Gemini CLI document it, as files that can be started.

Each refuses options that it does not know, keeps its sessions in its folder of settings, refuses to go on with one that
it does not have, and writes down how it was called. `play` in its folder says what it does: see `Play`.

They are started hundreds of times: their code is compiled once, and imports little.
"""

import functools
import json
import marshal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Play:
    """What a program does in a call."""

    answer: str = "I am fine."
    thinking: str = ""
    # Tools that it offers though it is told to have none, and one that it uses.
    tools: tuple[str, ...] = ()
    uses: str = ""
    # Words in which it fails, and whether as a result or as plain text with an exit code.
    fails: str = ""
    plainly: bool = False
    # Lines that are no JSON, before the answer.
    garbage: str = ""
    # Prints half of the answer, starts children that outlive it, and says nothing more.
    silent: bool = False
    logged_in: bool = True


SOURCE = r'''
import json, os, sys, time

NAME = os.path.basename(sys.argv[0])
HOME = os.environ[{"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "gemini": "GEMINI_CLI_HOME"}[NAME]]


def path(name):
    return os.path.join(HOME, name)


def say(**event):
    print(json.dumps(event), flush=True)


def stop(words, code=1):
    print(words, file=sys.stderr, flush=True)
    sys.exit(code)


def parsed(words, flags=(), values=(), choices={}, many=(), short={}):
    """The options among the words by name, `--x value` or `--x=value`; whatever else there is ends the program."""
    found = {name: False for name in flags} | {name: None for name in (*values, *choices)} | {name: [] for name in many}
    words = list(words)
    while words:
        given = words.pop(0)
        name, equals, value = given.partition("=") if given.startswith("--") else (short.get(given, given), "", "")
        if name not in found or (name in flags and equals):
            stop("error: unrecognized arguments: " + given, 2)
        if name in flags:
            found[name] = True
            continue
        if not equals and (not words or words[0].startswith("-")):
            stop("error: argument " + name + ": expected one argument", 2)
        value = value if equals else words.pop(0)
        if name in choices and value not in choices[name]:
            stop("error: argument " + name + ": invalid choice: " + repr(value), 2)
        found[name] = [*found[name], value] if name in many else value
    return found


def claude(words):
    options = parsed(
        words,
        flags=("--print", "--include-partial-messages", "--verbose", "--strict-mcp-config", "--fork-session",
               "--disable-slash-commands"),
        values=("--tools", "--setting-sources", "--system-prompt", "--model", "--resume"),
        choices={"--output-format": ("text", "json", "stream-json"),
                 "--effort": ("low", "medium", "high", "xhigh", "max")},
    )
    streams = options["--output-format"] == "stream-json"
    if options["--print"] and streams and not options["--verbose"]:
        stop("Error: When using --print, --output-format=stream-json requires --verbose")
    if options["--include-partial-messages"] and not streams:
        stop("Error: --include-partial-messages requires --print and --output-format=stream-json")
    if options["--fork-session"] and not options["--resume"]:
        stop("Error: --fork-session can only be used with --resume or --continue")
    off = options["--tools"] == "" and options["--strict-mcp-config"] and options["--setting-sources"] == ""
    return options["--resume"], options["--fork-session"], off


def codex(words):
    if words[:1] != ["exec"]:
        stop("error: unrecognized subcommand", 2)
    words, session = words[1:], None
    if "resume" in words:
        at = words.index("resume")
        words, rest = words[:at], words[at + 1:]
        if len(rest) != 2 or rest[1] != "-":
            stop("error: resume takes a session and a prompt", 2)
        session = rest[0]
    elif words[-1:] == ["-"]:
        words = words[:-1]
    options = parsed(
        words,
        flags=("--json", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules", "--ephemeral"),
        values=("--model",),
        choices={"--color": ("always", "never", "auto"),
                 "--sandbox": ("read-only", "workspace-write", "danger-full-access")},
        many=("--config",),
        short={"-m": "--model", "-c": "--config"},
    )
    settings = dict(one.split("=", 1) for one in options["--config"])
    tools = ("features.shell_tool", "features.unified_exec", "tools.view_image")
    off = all(settings.get(key) == "false" for key in tools)
    off = off and settings.get("web_search") == '"disabled"' and options["--ignore-user-config"]
    provider = ""
    if "model_provider" in settings:
        chosen = settings["model_providers." + settings["model_provider"].strip('"')]
        provider = chosen.split('base_url="')[1].split('"')[0] + "/responses"
    return session, False, off, provider


def gemini(words):
    options = parsed(
        words,
        values=("--model", "--resume", "--extensions"),
        choices={"--output-format": ("text", "json", "stream-json"),
                 "--approval-mode": ("default", "auto_edit", "yolo", "plan")},
        short={"-o": "--output-format"},
    )
    with open(os.environ["GEMINI_CLI_SYSTEM_SETTINGS_PATH"]) as file:
        settings = json.load(file)
    off = settings["tools"].get("core") == [] and options["--extensions"] == "none"
    provider = os.environ.get("GOOGLE_GEMINI_BASE_URL", "")
    if provider:
        assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
        provider += "/v1beta/models/m:streamGenerateContent?alt=sse"
    return options["--resume"], False, off, provider


def ask(provider, play, off):
    """Send a request as the real program does."""
    names = [*play["tools"], *([] if off else ["shell"])]
    if NAME == "codex":
        tools = [{"type": "function", "name": name} for name in ("update_plan", *names)]
        body = {"model": "m", "input": [], "tools": tools, "stream": True}
    else:
        body = {"contents": []}
        if names:
            body["tools"] = [{"functionDeclarations": [{"name": name} for name in names]}]
    import socket

    data = json.dumps(body).encode()
    host, _, path = provider.removeprefix("http://").partition("/")
    head = "POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    address, _, port = host.rpartition(":")
    with socket.create_connection((address, int(port)), timeout=10) as connection:
        connection.sendall((head % (path, host, len(data))).encode() + b"Connection: close\r\n\r\n" + data)
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    if answer.split(" ")[1] >= "400":
        stop(answer.partition("\r\n\r\n")[2])


def begin(session, play, off):
    tools = [*play["tools"], *([] if off else ["Bash", "Read"])]
    if NAME == "claude":
        say(type="system", subtype="init", session_id=session, tools=tools, mcp_servers=[], model="m", cwd=os.getcwd())
    elif NAME == "codex":
        say(type="thread.started", thread_id=session)
        say(type="turn.started")
    else:
        say(type="init", timestamp="t", session_id=session, model="m")


def use(tool):
    if NAME == "claude":
        block = {"type": "tool_use", "id": "t", "name": tool, "input": {}}
        say(type="assistant", message={"role": "assistant", "content": [block]})
    elif NAME == "codex":
        item = {"id": "i", "type": "command_execution", "command": tool, "status": "in_progress"}
        say(type="item.started", item=item)
    else:
        say(type="tool_use", timestamp="t", tool_name=tool, tool_id="t", parameters={})


def words(kind, text):
    if NAME == "claude":
        key = "thinking" if kind == "thinking" else "text"
        delta = {"type": key + "_delta", key: text}
        say(type="stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta})
    elif NAME == "codex":
        kind = "reasoning" if kind == "thinking" else "agent_message"
        say(type="item.completed", item={"id": "i", "type": kind, "text": text})
    elif kind == "text":
        say(type="message", timestamp="t", role="assistant", content=text, delta=True)


def finish(session, answer, fails):
    if NAME == "claude":
        if fails:
            limit = {"status": "rejected", "resetsAt": int(time.time()) + 7200, "rateLimitType": "five_hour"}
            say(type="rate_limit_event", rate_limit_info=limit, session_id=session)
            content = [{"type": "text", "text": fails}]
            say(type="assistant", message={"role": "assistant", "model": "<synthetic>", "content": content})
        else:
            say(type="stream_event", event={"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
            say(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": answer}]})
        usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 2}
        usage["output_tokens"] = 5
        ended = {"subtype": "success", "is_error": bool(fails), "result": fails or answer}
        say(type="result", session_id=session, usage=usage, **ended)
    elif NAME == "codex":
        if fails:
            say(type="error", message=fails)
            say(type="turn.failed", error={"message": fails})
        else:
            say(type="turn.completed", usage={"input_tokens": 15, "cached_input_tokens": 10, "output_tokens": 5})
    else:
        stats = {"total_tokens": 20, "input_tokens": 15, "output_tokens": 5, "cached": 10, "input": 5, "duration_ms": 1}
        outcome = {"status": "error", "error": {"type": "Error", "message": fails}} if fails else {"status": "success"}
        say(type="result", timestamp="t", stats=stats, **outcome)
    if fails:
        sys.exit(1)


def new_id():
    text = os.urandom(16).hex()
    return "-".join((text[:8], text[8:12], "4" + text[13:16], "8" + text[17:20], text[20:]))


def main():
    resume, fork, off, *provider = {"claude": claude, "codex": codex, "gemini": gemini}[NAME](sys.argv[1:])
    with open(path("play.json")) as file:
        play = json.load(file)
    given = sys.stdin.read()
    if any(provider):
        return ask(provider[0], play, off)
    with open(path("calls.jsonl"), "a") as file:
        above = os.path.dirname(HOME)
        try:
            seen = sorted(os.listdir(above))
        except OSError:
            seen = []
        call = {"words": sys.argv[1:], "given": given, "environment": dict(os.environ), "seen": seen}
        file.write(json.dumps(call) + "\n")
    if not play["logged_in"] and NAME == "claude":
        begin("s", play, off)
        return finish("s", "", "Not logged in · Please run /login")
    if not play["logged_in"]:
        stop({"codex": "401 Unauthorized: please log in again",
              "gemini": "Please set an Auth method in your settings.json"}[NAME])
    session = resume or new_id()
    before = ""
    if resume:
        try:
            with open(path(resume + ".session")) as file:
                before = file.read()
        except OSError:
            stop("No conversation found with session ID: " + resume)
        session = new_id() if fork else resume
    with open(path(session + ".session"), "w") as file:
        file.write(before + given)
    begin(session, play, off)
    if play["garbage"]:
        print(play["garbage"], flush=True)
    if play["fails"] and play["plainly"]:
        stop(play["fails"])
    if play["fails"]:
        return finish(session, "", play["fails"])
    if play["uses"]:
        use(play["uses"])
        time.sleep(60)
    if play["thinking"]:
        words("thinking", play["thinking"])
    if play["silent"]:
        words("text", play["answer"][:4])
        child = ["/bin/sh", "-c", "while :; do sleep 60; done", path("child")]
        os.posix_spawn(child[0], child, os.environ, setsid=True)
        time.sleep(60)
    words("text", play["answer"])
    with open(path(session + ".session"), "a") as file:
        file.write("\n" + play["answer"])
    finish(session, play["answer"], "")


main()
'''


@functools.cache
def _compiled() -> str:
    """The program as a line that runs what was compiled."""
    code = marshal.dumps(compile(SOURCE, "cli_programs", "exec"))
    return f"import marshal; exec(marshal.loads(bytes.fromhex('{code.hex()}')))\n"


class CliProgram:
    """One of the programs, installed in a folder."""

    def __init__(self, folder: Path, name: Literal["claude", "codex", "gemini"]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Its file.
        self.file = folder / name
        self.file.write_text(f"#!{Path(sys.base_prefix).resolve() / 'bin' / 'python3'} -IS\n{_compiled()}")
        self.file.chmod(0o755)
        # Its folder of settings.
        self.home = folder / "state" / "cli" / name
        self.home.mkdir(parents=True, exist_ok=True)
        self.plays()

    def plays(self, **play: Any) -> None:
        """Set what it does from now on."""
        (self.home / "play.json").write_text(json.dumps(asdict(Play(**play))))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that it got, proofs of its tools left out."""
        file = self.home / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def session(self, session_id: str) -> str:
        """What was said in a session."""
        return (self.home / f"{session_id}.session").read_text()
