"""A proxy for any protocol over TCP that breaks connections when certain bytes pass: before they arrive, or in place of a reply."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class TcpProxy:
    """`breaks` maps bytes of a request to the moment of the break, `before` or `after`; each happens once, then is in `broken`."""

    upstream: tuple[str, int]
    port: int = 0
    breaks: dict[bytes, str] = field(default_factory=dict)
    broken: list[bytes] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*self.upstream)
        losing = asyncio.Event()
        backward = asyncio.ensure_future(self._backward(up_reader, writer, losing))
        try:
            while data := await reader.read(1 << 16):
                match = next((pattern for pattern in self.breaks if pattern in data), None)
                if match is not None:
                    self.broken.append(match)
                    if self.breaks.pop(match) == "before":
                        break
                    losing.set()
                up_writer.write(data)
                await up_writer.drain()
        except ConnectionError:
            pass  # the client hung up, which ends its connection here as well
        finally:
            if losing.is_set():
                await backward
            backward.cancel()
            up_writer.transport.abort()
            writer.transport.abort()

    @staticmethod
    async def _backward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if losing.is_set():
                    break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@contextlib.contextmanager
def tcp_proxy(address: str) -> Iterator[TcpProxy]:
    """In front of `host:port`."""
    host, _, port = address.rpartition(":")
    proxy = TcpProxy((host, int(port)))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(proxy.handle, "127.0.0.1", 0), loop).result()
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_end_all(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_all(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
