"""Takes an index out of use at once, and back again: its bytes stay until they are vacuumed. The log is all that is needed."""

from grebe.log.commit import Log
from grebe.log.entry import NO_PURPOSE, IndexDeleted, IndexRestored, Purpose, Verb
from grebe.maintenance.operation import carry_out


def delete(log: Log, name: str, heartbeat_seconds: float = 60.0, purpose: Purpose = NO_PURPOSE) -> None:
    carry_out(
        log,
        Verb.DELETE,
        [name],
        lambda running: lambda state: [IndexDeleted(name)],
        heartbeat_seconds=heartbeat_seconds,
        purpose=purpose,
    )


def restore(log: Log, name: str, heartbeat_seconds: float = 60.0) -> None:
    carry_out(
        log,
        Verb.RESTORE,
        [name],
        lambda running: lambda state: [IndexRestored(name)],
        heartbeat_seconds=heartbeat_seconds,
    )
