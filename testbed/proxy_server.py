"""The process behind `testbed.proxy`: passes HTTP requests on to a server, counts them, and lets some go wrong.

Called as `proxy_server.py UPSTREAM PORT`. What is to go wrong is told by JSON at `/__proxy__/plan`; `/__proxy__/seen` tells what
came.
"""

import asyncio
import random
import sys
from typing import Any

import yarl
from aiohttp import ClientSession, DummyCookieJar, TCPConnector, web

CONTROL = "/__proxy__"
_OF_THE_CONNECTION = {"connection", "transfer-encoding", "content-length", "accept-encoding", "keep-alive"}
_OF_THE_REPLY = {"connection", "transfer-encoding", "content-encoding", "date", "server", "keep-alive"}
_ANSWERS_BEFORE = {
    "503 before": (503, "SlowDown"),
    "500 before": (500, "InternalError"),
    "429 before": (429, "TooManyRequests"),
    "409 before": (409, "ConditionalRequestConflict"),
    "403 before": (403, "AccessDenied"),
}


class Proxy:
    def __init__(self, upstream: str, session: ClientSession) -> None:
        self._upstream = upstream
        self._session = session
        self._seen: list[dict[str, Any]] = []
        self._steps: list[dict[str, Any]] = []
        self._random = random.Random(0)
        self._rates: dict[str, float] = {}
        self._latency = 0.0
        self._slow = 0.0
        self._under_way = 0

    async def set_plan(self, request: web.Request) -> web.Response:
        plan = await request.json()
        self._steps = plan["steps"]
        self._random = random.Random(plan["seed"])
        self._rates = plan["rates"]
        self._latency = plan["latency"]
        self._slow = plan["slow"]
        self._seen = []
        return web.Response()

    async def tell_seen(self, request: web.Request) -> web.Response:
        return web.json_response(self._seen)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self._under_way += 1
        try:
            return await self._reply(request)
        finally:
            self._under_way -= 1

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        kind = _kind(request)
        fault = self._fault(kind, request.raw_path)
        span = request.headers.get("Range", "")
        record = {
            "kind": kind,
            "path": request.raw_path,
            "span": span,
            "fault": fault,
            "status": 0,
            "under_way": self._under_way,
        }
        self._seen.append(record)
        if self._latency:
            await asyncio.sleep(self._latency)
        if fault == "reset before":
            return _hang_up(request)
        if fault in _ANSWERS_BEFORE:
            status, code = _ANSWERS_BEFORE[fault]
            record["status"] = status
            return web.Response(
                status=status, content_type="application/xml", text=f"<Error><Code>{code}</Code></Error>"
            )
        if fault == "late":
            # The caller has long given up when the request arrives, and is told nothing.
            await asyncio.sleep(self._slow)
        status, headers, data = await self._pass_on(request, body)
        record["status"] = status
        if fault in ("lost reply", "late"):
            return _hang_up(request)
        if fault == "500 after":
            return web.Response(
                status=500, content_type="application/xml", text="<Error><Code>InternalError</Code></Error>"
            )
        if fault == "slow reply":
            await asyncio.sleep(self._slow)
        if fault == "cut short":
            return await _cut_short(request, status, headers, data)
        if request.method == "HEAD":
            return web.Response(status=status, headers=headers)
        headers.pop("Content-Length", None)
        return web.Response(status=status, headers=headers, body=data)

    def _fault(self, kind: str, path: str) -> str:
        for step in self._steps:
            if step["kind"] in ("", kind) and step["match"] in path and step["times"] > 0:
                step["times"] -= 1
                return str(step["fault"])
        chance = self._random.random()
        for fault, rate in self._rates.items():
            chance -= rate
            if chance < 0:
                return fault if _can_happen(fault, kind) else ""
        return ""

    async def _pass_on(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_CONNECTION}
        async with self._session.request(
            request.method,
            # As it came: a path decoded and encoded again would no longer fit its signature.
            yarl.URL(self._upstream + request.raw_path, encoded=True),
            headers=headers,
            data=body if body or request.method in ("PUT", "POST") else None,
            allow_redirects=False,
            skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
        ) as reply:
            kept = {name: value for name, value in reply.headers.items() if name.lower() not in _OF_THE_REPLY}
            return reply.status, kept, b"" if request.method == "HEAD" else await reply.read()


def _kind(request: web.Request) -> str:
    if request.method == "GET" and ("list-type" in request.query or request.query.get("comp") == "list"):
        return "LIST"
    if request.method == "PUT" and "If-None-Match" in request.headers:
        return "PUT IF ABSENT"
    return request.method


def _can_happen(fault: str, kind: str) -> bool:
    if fault == "cut short":
        return kind == "GET"
    return kind == "PUT IF ABSENT" if fault == "409 before" else True


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _cut_short(request: web.Request, status: int, headers: dict[str, str], data: bytes) -> web.StreamResponse:
    reply = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(data))})
    await reply.prepare(request)
    await reply.write(data[: len(data) // 2])
    if request.transport is not None:
        request.transport.abort()
    return reply


async def main(upstream: str, port: int) -> None:
    async with ClientSession(
        connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar(), auto_decompress=False
    ) as session:
        proxy = Proxy(upstream, session)
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post(f"{CONTROL}/plan", proxy.set_plan)
        app.router.add_get(f"{CONTROL}/seen", proxy.tell_seen)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, auto_decompress=False)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
