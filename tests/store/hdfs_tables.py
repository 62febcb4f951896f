"""Tables on HDFS whose parts are open to different people, for both stores."""

from dataclasses import dataclass, field
from typing import Any

from grebe.clock import SYSTEM
from grebe.store.hdfs import HdfsStore
from testbed.hdfs import HdfsServer


@dataclass
class HdfsTable:
    """`t` in a folder of its own; paths given to its methods are relative to that folder."""

    server: HdfsServer
    lake: str = field(default_factory=SYSTEM.new_id)

    @property
    def client(self) -> Any:
        return HdfsStore(self.server.uri(), {})._client

    def uri(self, path: str) -> str:
        return self.server.uri(f"{self.lake}/{path}")

    def write(self, path: str, file: int = 0o644, **folders: int) -> None:
        """Write a file with this mode, and set the modes of folders on the way, by their names with `=` as `_`."""
        HdfsStore(self.uri(""), {}).put(path, b"x")
        self.chmod(path, file)
        parts = path.split("/")[:-1]
        for number, name in enumerate(parts, 1):
            self.chmod("/".join(parts[:number]), folders.get(name.replace("=", "_"), 0o755))

    def chmod(self, path: str, mode: int) -> None:
        self.client.set_permission(f"/{self.lake}/{path}", mode)

    def chgrp(self, path: str, group: str) -> None:
        self.client.set_owner(f"/{self.lake}/{path}", group=group)

    def grant(self, path: str, user: str, bits: str, scope: str = "access") -> None:
        from hdfs_native import AclEntry

        self.client.modify_acl_entries(f"/{self.lake}/{path}", [AclEntry("user", scope, bits, user)])  # type: ignore[arg-type]

    def mode(self, path: str) -> int:
        return int(self.client.get_file_info(f"/{self.lake}/{path}").permission) & 0o777


PARTITIONED = {
    "as open as the table": ({"file": 0o644}, 0o755),
    "a closed partition": ({"file": 0o600, "day_1": 0o700}, 0o700),
    "a closed partition with open files": ({"file": 0o644, "day_1": 0o700}, 0o700),
    "a partition for the group": ({"file": 0o640, "day_1": 0o750}, 0o750),
    "closed files in an open partition": ({"file": 0o600}, 0o700),
    "files for the group in an open partition": ({"file": 0o640}, 0o750),
    "a closed partition of a partition": ({"file": 0o644, "hour_1": 0o700}, 0o700),
}
"""Modes of `t/day=1/hour=1/part-0` and of the folders on the way, and that of the folder of the indexes."""
