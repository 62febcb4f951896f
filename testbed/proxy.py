"""A proxy in front of a server: counts requests, adds latency, and makes them fail, by a script or by a seeded chance."""

import contextlib
import json
import socket
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.process import free_ports, running, scratch_folder

# Of all requests, this share each. "late" and "slow reply" need a client that gives up before they end.
SOME_OF_EACH = {
    "503 before": 0.03,
    "500 after": 0.03,
    "lost reply": 0.04,
    "reset before": 0.03,
    "409 before": 0.02,
    "cut short": 0.02,
}


@dataclass(frozen=True)
class Step:
    """The next `times` requests of that kind and with `match` in their path meet `fault`; an empty fault lets them pass.

    Kinds: GET, LIST, HEAD, PUT, PUT IF ABSENT, POST, DELETE, or empty for any. Faults: those of `SOME_OF_EACH`, and `500 before`,
    `429 before`, `403 before`, `slow reply` (carried out at once, told after `slow` seconds), `late` (carried out after them).
    """

    fault: str
    kind: str = ""
    match: str = ""
    times: int = 1


@dataclass(frozen=True)
class Seen:
    """A request that came; `under_way` counts those without a reply when it came, itself included."""

    kind: str
    path: str
    span: str
    fault: str
    status: int
    under_way: int


def rounds(seen: Sequence[Seen]) -> int:
    """Requests that came when no other was under way: each waited for those before it."""
    return sum(one.under_way == 1 for one in seen)


@dataclass(frozen=True)
class FaultProxy:
    endpoint: str

    def plan(
        self,
        steps: Sequence[Step] = (),
        *,
        seed: int = 0,
        rates: Mapping[str, float] | None = None,
        latency: float = 0.0,
        slow: float = 3.0,
    ) -> None:
        """What goes wrong from now on: first the steps, then each request by chance. Forgets what was seen."""
        orders = {"steps": [asdict(step) for step in steps], "seed": seed, "rates": dict(rates or {})}
        self._ask("plan", {**orders, "latency": latency, "slow": slow})

    def seen(self) -> list[Seen]:
        """All requests since the last plan, in order of arrival."""
        return [Seen(**each) for each in self._ask("seen")]

    def counts(self) -> Counter[str]:
        return Counter(each.kind for each in self.seen())

    def _ask(self, what: str, orders: Mapping[str, object] | None = None) -> Any:
        body = json.dumps(orders).encode() if orders is not None else None
        with urllib.request.urlopen(f"{self.endpoint}/__proxy__/{what}", body, timeout=30) as reply:
            answer = reply.read()
        return json.loads(answer) if answer else None


@contextlib.contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """Starts a proxy in front of `upstream`; it lets everything pass until told otherwise."""
    (port,) = free_ports(1)
    program = Path(__file__).with_name("proxy_server.py")

    def listens() -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", port)) == 0

    with running(scratch_folder("proxy"), [sys.executable, program, upstream, str(port)]) as child:
        child.wait_until(listens)
        yield FaultProxy(f"http://127.0.0.1:{port}")
