"""A strict MCP server over standard input and output, written from the published protocol and on no library.

Run as a program: `python mcp_stdio.py FILE`. FILE is JSON that says what it shows and how it misbehaves, read anew
with each request. What it receives is appended to `FILE.log`, a line of JSON each; the first is its pid. A message that
breaks a rule of the protocol is answered with an error and noted there as `{"broken": ...}`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
Json = dict[str, Any]


class Broken(Exception):
    """A rule is broken. code: of JSON-RPC."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Session:
    """The rules of one connection, whatever carries it."""

    def __init__(self, plan: Path) -> None:
        self.plan = plan
        self.stage = "new"
        self.tells = False
        # Messages that go before the next answer, and what happens behind it.
        self.before: list[Json] = []
        self.then = ""
        self.ids = set[Any]()

    def says(self) -> Json:
        """What the server shows and does, as of now."""
        found: Json = json.loads(self.plan.read_text())
        return found

    def note(self, what: Json) -> None:
        """Add a line to the log."""
        with open(f"{self.plan}.log", "a") as file:
            file.write(json.dumps(what) + "\n")

    def take(self, message: Any) -> Json | None:
        """Take a message; returns the answer, if there is one."""
        self.note(message if isinstance(message, dict) else {"received": message})
        try:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise Broken(-32600, "no JSON-RPC 2.0 message")
            method = message.get("method")
            if "method" not in message and ("result" in message or "error" in message):
                return None  # to a request of the server
            if "id" not in message:
                self._notified(method)
                return None
            if not isinstance(message["id"], str | int) or isinstance(message["id"], bool):
                raise Broken(-32600, "an id is a string or an integer")
            if message["id"] in self.ids:
                raise Broken(-32600, "an id is used once")
            self.ids.add(message["id"])
            if "params" in message and not isinstance(message["params"], dict):
                raise Broken(-32602, "params is an object")
            result = self._answer(method, message.get("params") or {})
        except Broken as error:
            if error.code != -32601:
                self.note({"broken": str(error)})
            given = message.get("id") if isinstance(message, dict) else None
            return {"jsonrpc": "2.0", "id": given, "error": {"code": error.code, "message": str(error)}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _notified(self, method: Any) -> None:
        if method == "notifications/initialized":
            if self.stage != "initializing":
                raise Broken(-32600, "initialized comes once, after initialize")
            self.stage = "ready"
        elif method != "notifications/cancelled":
            raise Broken(-32600, f"no notification {method}")

    def _answer(self, method: Any, params: Json) -> Json:
        says = self.says()
        if method == "initialize":
            return self._initialize(params, says)
        if method == "ping":
            return {}
        known = {
            "tools": ("tools/list", "tools/call"),
            "resources": ("resources/list", "resources/read"),
            "prompts": ("prompts/list", "prompts/get"),
        }
        if not any(method in methods and kind in says for kind, methods in known.items()):
            raise Broken(-32601, "Method not found")
        if self.stage != "ready":
            raise Broken(-32600, "nothing is asked before initialized")
        return self._do(method, params, says)

    def _initialize(self, params: Json, says: Json) -> Json:
        if self.stage != "new":
            raise Broken(-32600, "initialize comes once, and first")
        info, wanted = params.get("clientInfo"), params.get("protocolVersion")
        if not isinstance(wanted, str) or not isinstance(params.get("capabilities"), dict):
            raise Broken(-32602, "initialize has protocolVersion and capabilities")
        if not isinstance(info, dict) or not all(isinstance(info.get(key), str) for key in ("name", "version")):
            raise Broken(-32602, "clientInfo has name and version")
        self.stage = "initializing"
        version = says.get("version") or (wanted if wanted in VERSIONS else VERSIONS[-1])
        has: Json = {kind: {} for kind in ("tools", "resources", "prompts") if kind in says}
        return {"protocolVersion": version, "capabilities": has, "serverInfo": {"name": "stand-in", "version": "1"}}

    def _do(self, method: str, params: Json, says: Json) -> Json:
        if method == "tools/list":
            return self._page(params, says["tools"], "tools")
        if method == "resources/list":
            found = [{"uri": uri, "name": uri} for uri in says["resources"]]
            return {"resources": found}
        if method == "resources/read":
            if params.get("uri") not in says["resources"]:
                raise Broken(-32002, "Resource not found")
            return {"contents": [{"uri": params["uri"], "text": says["resources"][params["uri"]]}]}
        if method == "prompts/list":
            return {"prompts": [{"name": name, "arguments": [{"name": "who"}]} for name in says["prompts"]]}
        if method == "prompts/get":
            text = says["prompts"][params["name"]].format(**params.get("arguments", {}))
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        return self._call(params, says)

    def _page(self, params: Json, items: list[Json], kind: str) -> Json:
        """One tool a page, so that the cursor is followed."""
        at = int(params.get("cursor", "0"))
        shown = [one["raw"] if "raw" in one else self._shown(one) for one in items[at : at + 1]]
        end = self.says().get("end", {})
        return {kind: shown} | ({"nextCursor": str(at + 1)} if at + 1 < len(items) else end)

    def _shown(self, one: Json) -> Json:
        found = {"name": one["name"], "description": one.get("description", "")}
        found["inputSchema"] = one.get("schema", {"type": "object"})
        return found | ({"annotations": one["annotations"]} if "annotations" in one else {})

    def _call(self, params: Json, says: Json) -> Json:
        found = next((one for one in says["tools"] if one.get("name") == params.get("name")), None)
        if found is None:
            raise Broken(-32602, f"Unknown tool: {params.get('name')}")
        given = params.get("arguments", {})
        if missing := set(found.get("schema", {}).get("required", ())) - {*given}:
            raise Broken(-32602, f"missing: {', '.join(sorted(missing))}")
        does = found.get("does", {})
        if "reads" in does:  # a named pipe, which holds it up until somebody writes
            Path(does["reads"]).read_bytes()
        if "sleep" in does:
            time.sleep(does["sleep"])
        if "exit" in does:
            sys.stderr.write("the stand-in falls over\n")
            sys.stderr.flush()
            os._exit(does["exit"])
        self.before = [message for message in does.get("before", ()) for _ in range(does.get("times", 1))]
        self.then = does.get("then", "")
        if "show" in does:
            self.plan.write_text(json.dumps({**says, "tools": does["show"]}))
            self.tells = True
        text = does.get("text", json.dumps(given, sort_keys=True))
        if text == "$env":
            text = json.dumps(dict(os.environ))
        content = does.get("content", [{"type": "text", "text": text}])
        return {"content": content, "isError": does.get("error", False)}


def main(plan: Path) -> None:
    """Serve standard input."""
    session = Session(plan)
    session.note({"pid": os.getpid()})
    says = session.says()
    if says.get("stays"):
        _stay(session)
    if "dies" in says:
        sys.stderr.write(says["dies"] + "\n")
        raise SystemExit(1)
    for line in sys.stdin:
        answer = session.take(json.loads(line))
        if answer is None or session.says().get("mute"):
            continue
        before, session.before = session.before, []
        sys.stdout.write("".join(json.dumps(one) + "\n" for one in (*before, answer)))
        if session.tells:
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            sys.stdout.write(json.dumps(changed) + "\n")
        sys.stdout.flush()
        if session.then == "ends":
            os._exit(0)
        if session.then == "closes":
            os.close(1)
            time.sleep(60)
    while says.get("stays"):
        time.sleep(60)


def _stay(session: Session) -> None:
    """Start a process that left the session and the parent, and end by nothing but SIGKILL, as that one."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        child = os.fork()
        if child:
            session.note({"pid": child})
            os._exit(0)
        while True:
            time.sleep(60)
    os.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
