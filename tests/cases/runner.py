"""Running a case on an endpoint.

The three files are brought to one kind of step, so that one runner serves them. Where the cases say to wait for a
while, the endpoint's own clock is what passes: a manual clock is moved, a server's TIME is polled.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.endpoints import Client, Endpoint
from tests.support.live import Lost

from .notation import NOTHING, from_frame, same, translate, unpack

__all__ = ["Case", "load", "outside", "run"]

HERE = Path(__file__).parent
_CALLED_BY_SCRIPT = re.compile(r"(?:redis|server)\.p?call\(\s*['\"](\w+)['\"]")


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    protocols: dict[str, int]  # by client; "" for those not named
    steps: list[dict[str, Any]]

    def mentions(self, *words: str) -> bool:
        return bool(set(words) & self.commands)

    @property
    def waits(self) -> bool:
        """Whether time has to pass."""
        return any(word in step for step in self.steps for word in ("sleep_ms", "quiet_ms", "not_before_ms"))

    @property
    def commands(self) -> set[str]:
        """The names of all commands the case sends, also from within scripts."""
        out: set[str] = set()
        for step in self.steps:
            words = [word for word in step.get("cmd", ()) if isinstance(word, str)]
            out.update(word.upper() for word in words[:1])
            for word in words[1:]:
                out.update(name.upper() for name in _CALLED_BY_SCRIPT.findall(word))
        return out


def _from_probe(record: dict[str, Any]) -> Case:
    steps = [{"cmd": command, "match": "any", "reply": {"err": ""}} for command in record["setup"]]
    steps.append({"cmd": record["command"], "match": "literal", "reply": translate(record["valkey_reply"])})
    return Case("probes:" + record["name"], {"": record["protocol"]}, steps)


def _from_scenario(record: dict[str, Any]) -> Case:
    steps: list[dict[str, Any]] = []
    for step in record["steps"]:
        if "sleep" in step:
            steps.append({"sleep_ms": step["sleep"] * 1000})
            continue
        conn, reply = step["client"], translate(step.get("reply"))
        if "receive" in step and reply == NOTHING:
            steps.append({"conn": conn, "quiet_ms": step["receive"] * 1000})
        elif "receive" in step:
            steps.append({"conn": conn, "await": True, "match": "literal", "reply": reply})
        elif step.get("wait") is False:
            steps.append({"conn": conn, "cmd": step["send"], "async": True})
        else:
            steps.append({"conn": conn, "cmd": step["send"], "match": "literal", "reply": reply})
    return Case("scenarios:" + record["name"], record["protocol"], steps)


def _from_bug(record: dict[str, Any]) -> Case:
    return Case("bugs:" + record["id"], {"": record.get("resp", 2)}, record["steps"])


def load() -> list[Case]:
    """Every case of the three files."""
    out = []
    for name, convert in (("bugs", _from_bug), ("probes", _from_probe), ("scenarios", _from_scenario)):
        with open(HERE / f"{name}.jsonl", encoding="utf-8") as lines:
            out += [convert(json.loads(line)) for line in lines]
    return out


def outside() -> dict[str, list[str]]:
    """The cases of ``outside.txt``: id to the commands it needs and emuredis does not have."""
    lines = (HERE / "outside.txt").read_text("utf-8").splitlines()
    return {words[0]: words[1:] for line in lines if (words := line.split()) and not line.startswith("#")}


class _Run:
    def __init__(self, case: Case, endpoint: Endpoint) -> None:
        self.case = case
        self.endpoint = endpoint
        self.clients: dict[str, Client] = {}
        self.sent_ms: dict[str, int] = {}
        self.names: dict[str, Any] = {}
        self.wrong: list[str] = []

    def client(self, name: str) -> Client:
        if name not in self.clients:
            protocols = self.case.protocols
            self.clients[name] = self.endpoint.open(protocols.get(name, protocols.get("", 2)))
        return self.clients[name]

    def receive(self, client: Client, wait: bool) -> Any:
        try:
            return from_frame(client.receive(wait))
        except Lost:
            return {"disconnected": True}

    def step(self, number: int, step: dict[str, Any]) -> None:
        name = step.get("conn", "a")
        if "sleep_ms" in step:
            self.endpoint.wait(round(step["sleep_ms"]))
        elif step.get("close"):
            self.clients.pop(name).close()
            self.endpoint.settle(None)
        elif "quiet_ms" in step:
            self.endpoint.wait(round(step["quiet_ms"]))
            self.endpoint.settle(None)
            got = self.receive(self.client(name), wait=False)
            if got != NOTHING:
                self.wrong.append(
                    f"step {number}: nothing was to come for {step['quiet_ms']} ms, but {got!r} came"
                )
        else:
            self._exchange(number, step, name)

    def _exchange(self, number: int, step: dict[str, Any], name: str) -> None:
        client = self.client(name)
        if "raw" in step or "cmd" in step:
            self.sent_ms[name] = self.endpoint.now_ms()
        if "raw" in step:
            client.send_raw(unpack(step["raw"], self.names))
        for repeat in range(step.get("repeat", 1) if "cmd" in step else 0):
            if repeat:
                self.receive(client, wait=True)
            client.send([unpack(arg, self.names) for arg in step["cmd"]])
        if step.get("async"):
            self.endpoint.settle(client)
            return
        got = self.receive(client, wait=True)
        self._check(number, step, got, self.endpoint.now_ms() - self.sent_ms.get(name, 0))

    def _check(self, number: int, step: dict[str, Any], got: Any, took_ms: int) -> None:
        want = self._filled(step.get("reply"))
        if not same(step, want, got):
            what = step.get("cmd", step.get("raw", "(next reply)"))
            how = step.get("match", "exact")
            self.wrong.append(f"step {number} {what}\n  live ({how})  {want!r}\n  came  {got!r}"[:3000])
        if took_ms > step.get("within_ms", took_ms) or took_ms < step.get("not_before_ms", took_ms):
            self.wrong.append(f"step {number}: the answer came after {took_ms} ms")
        if "save" in step:
            for part in step.get("path", ()):
                got = got[part]
            self.names[step["save"]] = got

    def _filled(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, dict) and "var" in value:
            return self.names.get(value["var"])
        if isinstance(value, dict):
            return {
                key: self._filled(item) if isinstance(item, list) else item for key, item in value.items()
            }
        return value


def run(case: Case, endpoint: Endpoint) -> list[str]:
    """What went otherwise than on the live server; empty when all is well."""
    endpoint.begin(case)
    state = _Run(case, endpoint)
    try:
        for number, step in enumerate(case.steps, 1):
            state.step(number, step)
    except (
        Lost,
        ValueError,
        LookupError,
        TypeError,
    ) as problem:  # the last three: a reply no later step can use
        state.wrong.append(f"step {number}: {problem}")
    finally:
        for client in state.clients.values():
            client.close()
    return state.wrong
