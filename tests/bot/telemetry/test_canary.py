"""One service with keys of every kind planted wherever one may stand; afterwards all that it left is searched."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2

from bot.gateway.unix_socket import address
from tests.bot.telemetry.kinds import KINDS, NAMED
from tests.forked import ROOT, hark
from tests.standins.openai_server import OpenAIServer
from tests.standins.script import Call, Fail, Say
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE

# Values that only the configuration and the environment make secrets.
KNOWN = {
    "model": "canary-model-7f3a",
    "second": "canary-second-91bc",
    "gateway": 'canary "gateway" ü 55d1'.replace(" ", "_"),
    "env": "sk-canary-env-4417-abcdefgh",
    "dotenv": "canary-dotenv-8c20-xyz",
}
# The configuration: what it names by `${…}`, `file:` and `command:` stands elsewhere.
SECRETS = "\n".join([*KINDS.values(), *KNOWN.values(), f"aws_secret_access_key = {NAMED}"])


def parts() -> Iterator[tuple[str, str]]:
    """What is searched for: of each key a piece that stands nowhere else, also as JSON writes it."""
    for name, key in {**KINDS, **KNOWN, "AWS": NAMED}.items():
        piece = key.splitlines()[len(key.splitlines()) // 2][-14:]
        yield name, piece
        yield name, json.dumps(piece)[1:-1]


def leaks(where: str, data: bytes) -> list[str]:
    return [f"{name} in {where}" for name, piece in parts() if piece.encode() in data]


async def test_no_key_is_in_anything_that_it_left(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, OpenAIServer(keys=(KNOWN["model"],)) as model:
        write_configuration(tmp_path, telegram, model)
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "ANTHROPIC_API_KEY": KNOWN["env"],
        }
        output = tmp_path / "output"
        with output.open("wb") as log:
            service = await asyncio.to_thread(
                partial(subprocess.Popen, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log),
                [sys.executable, "-m", "bot", "run"],
            )
        try:
            await asyncio.to_thread(until_ready, tmp_path, service)
            found = await talk(telegram, model)
            outputs = [output.read_bytes(), *[text.encode() for text in found]]
            for command in (
                ("agent", "--json", "-m", f"look: {SECRETS}"),
                ("status",),
                ("usage", "--json"),
                ("doctor", "--json"),
                ("config", "get"),
                ("config", "check"),
                ("people", "--json"),
                ("approvals", "list", "--json"),
                ("security", "audit", "--json"),
            ):
                done = await asyncio.to_thread(hark, tmp_path, *command, environ=environ)
                assert done.out, (command, done.error)
                outputs.append((done.out + done.error).encode())
            outputs += await over_http(tmp_path)
        finally:
            service.terminate()
            await asyncio.to_thread(service.wait, 60)
        outputs.append(output.read_bytes())
        outputs += [json.dumps(request.body, ensure_ascii=False).encode() for request in model.requests]
        outputs += [text.encode() for text in telegram.texts()]
        for file in (tmp_path / "workspace" / "tool-results").rglob("*"):
            outputs.append(file.read_bytes() if file.is_file() else b"")
        kept = [file for file in (tmp_path / "state").rglob("*") if file.is_file()]
        assert {"hark.db", "payloads.jsonl"} <= {file.name for file in kept}
        assert any(b"[secret]" in data for data in outputs)
        wrong = [leak for number, data in enumerate(outputs) for leak in leaks(f"output {number}", data)]
        wrong += [leak for file in kept for leak in leaks(file.name, file.read_bytes())]
        wrong += leaks("memory.md", (tmp_path / "workspace" / "memory.md").read_bytes())
        assert wrong == [], "\n".join(sorted(set(wrong)))


def write_configuration(folder: Path, telegram: TelegramServer, model: OpenAIServer) -> None:
    provider = {
        "api": "openai-chat",
        "base_url": model.base_url,
        "api_keys": [KNOWN["model"], f"command:printf %s {KNOWN['second'][:9]}; echo {KNOWN['second'][9:]}"],
        "models": {"m": {}},
    }
    config = {
        "providers": {"mine": provider},
        "agent": {"model": "mine/m", "name": KINDS["GitHub"]},
        "owners": [f"telegram:{ALICE.id}"],
        "channels": {
            "telegram": {
                "token": telegram.token,
                "base_url": telegram.base_url,
                "base_file_url": telegram.base_file_url,
                "prompt": f"Never say ${{MINE}} nor {KINDS['Slack bot']}.",
            }
        },
        "gateway": {"port": 0, "token": "file:token"},
        "telemetry": {"payloads": True},
        "tools": {"exec": {"security": "full"}, "untrusted": {"file": "allow"}},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / ".env").write_text(f"MINE={KINDS['Stripe']}\nOPENAI_API_KEY={KNOWN['dotenv']}\n")
    (folder / "token").write_text(f"{KNOWN['gateway']}\n")
    (folder / "workspace").mkdir()
    (folder / "workspace" / "notes.txt").write_text(SECRETS)
    (folder / "workspace" / "AGENTS.md").write_text(f"Use these:\n{SECRETS}\n")


async def talk(telegram: TelegramServer, model: OpenAIServer) -> list[str]:
    """A conversation in which people, tools, the model and its errors say keys; returns what was sent."""
    model.add(
        Call("read", {"path": "notes.txt"}), Call("exec", {"command": "cat notes.txt; sleep 0.1; cat notes.txt >&2"})
    )
    model.add(Call("exec", {"command": "for i in $(seq 400); do cat notes.txt; done"}))
    model.add(
        Call("write", {"path": "memory.md", "content": SECRETS}), Call("exec", {"command": f"echo {KINDS['JWT']}"})
    )
    for _ in range(3):  # once more as it is, and once with other ids of calls
        model.add(Fail(400, f"bad: {SECRETS}"[:3000]))
    model.tolerate("prefix changed")
    telegram.write(f"here they are:\n{SECRETS}")
    await telegram.wait_for(lambda: len(telegram.texts()) >= 1, "the notice of the failure", 30)
    model.add(Say(f"They are:\n{SECRETS}", chunks=97))
    telegram.write(f"and {KINDS['AWS id']} again")
    await telegram.wait_text("They are", 30)
    telegram.write("/status")
    await telegram.wait_for(lambda: any("model" in text.lower() for text in telegram.texts()[-1:]), "status", 30)
    return telegram.texts()


def until_ready(folder: Path, service: "subprocess.Popen[bytes]") -> None:
    while not (folder / "state" / "hark.sock").exists():
        assert service.poll() is None, (folder / "output").read_text()


async def over_http(folder: Path) -> list[bytes]:
    """What is answered over HTTP to messages, events and mistakes with keys, and the events of the last run."""
    with address(folder / "state" / "hark.sock") as where:
        async with httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(where)), base_url="http://hark", timeout=30
        ) as http:
            found = []
            accepted = await http.post("/v1/agent", json={"message": SECRETS, "extra_context": SECRETS, "session": "x"})
            run = accepted.json()["run_id"]
            found.append(await http.get(f"/v1/agent/{run}", params={"wait": "30"}))
            events = await http.get("/v1/events", params={"run": run, "last_event_id": "0"})
            assert b"agent_end" in events.content
            wake = {"text": SECRETS, "now": False, "session": "x"}
            found += [accepted, events, await http.post("/v1/heartbeat/wake", json=wake)]
            found.append(await http.post("/v1/agent", json={"message": [SECRETS], "thinking": SECRETS}))
            found.append(await http.post("/v1/approvals/x", json={"decision": "deny", "reason": SECRETS}))
            found += [await http.get(path) for path in ("/v1/status", "/v1/usage", "/readyz", "/v1/heartbeat")]
    return [one.content for one in found]
