"""An emulator of Azure's Blob Storage: azurite, from npm. Optional: without node and npm there is none."""

import base64
import contextlib
import hashlib
import hmac
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from grebe.store.own_folder import cache_folder
from testbed.cached import made_once
from testbed.process import free_ports, running, scratch_folder

_VERSION = "3.37.0"
_FOLDER = f"azurite-{_VERSION}"
_API_VERSION = "2021-08-06"


@dataclass(frozen=True)
class AzureServer:
    endpoint: str
    account: str = "testaccount"
    key: str = base64.b64encode(b"a key of the tests, no secret at all").decode()
    container: str = "lake"

    def uri(self, path: str = "") -> str:
        return f"az://{self.container}/{path}".rstrip("/")

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "account_name": self.account,
            "account_key": self.key,
            "endpoint": f"{self.endpoint}/{self.account}",
            "allow_http": "true",
        }


def _program() -> Path:
    return cache_folder() / _FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def available() -> bool:
    return shutil.which("node") is not None and _program().exists()


def install() -> bool:
    """Installs azurite into the cache; False where npm is missing."""
    if available():
        return True
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return False
    made_once(_FOLDER, lambda folder: _fill(npm, folder))
    return True


def _fill(npm: str, folder: Path) -> None:
    command: list[str | Path] = [npm, "install", "--no-audit", "--no-fund", "--prefix", folder]
    subprocess.run([*command, f"azurite@{_VERSION}"], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def azure_server() -> Iterator[AzureServer]:
    folder = scratch_folder("azure")
    (port,) = free_ports(1)
    server = AzureServer(f"http://127.0.0.1:{port}")
    node = shutil.which("node")
    assert node is not None
    command: list[str | Path] = [
        "env",
        f"AZURITE_ACCOUNTS={server.account}:{server.key}",
        node,
        _program(),
        *("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)),
        "--silent",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]
    with running(folder, command) as child:
        child.wait_until(lambda: _make_container(server))
        yield server


def _make_container(server: AzureServer) -> bool:
    """One signed request; False while the server is not listening yet."""
    date = formatdate(time.time(), usegmt=True)
    # The shared-key signature: eleven empty standard headers, those of the service, then the resource.
    to_sign = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_API_VERSION}\n"
    to_sign += f"/{server.account}/{server.account}/{server.container}\nrestype:container"
    digest = hmac.new(base64.b64decode(server.key), to_sign.encode(), hashlib.sha256).digest()
    request = urllib.request.Request(
        f"{server.endpoint}/{server.account}/{server.container}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": _API_VERSION,
            "Authorization": f"SharedKey {server.account}:{base64.b64encode(digest).decode()}",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"the emulator refused the container: {error.code} {error.read().decode()}") from error
    except OSError:
        return False
