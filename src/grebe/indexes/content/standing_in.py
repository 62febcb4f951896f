"""What kinds share that keep rows and only stand in: how what was written is described, checked, and offered to the planner."""

from grebe.indexes.content.checks import faults_of
from grebe.indexes.content.copies import copy_of
from grebe.indexes.content.directory import describe
from grebe.indexes.faults import Fault
from grebe.indexes.kind import Copy, Pruner
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import IndexState
from grebe.store.protocol import Store


class StandsIn:
    """Base of such kinds."""

    name: str

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        return describe(self.name, spec, folder, store)

    @staticmethod
    def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
        return faults_of(index, store, deep)

    @staticmethod
    def copy_of(index: IndexState, store: Store) -> Copy:
        return copy_of(index, store)

    @staticmethod
    def pruner_of(index: IndexState, store: Store) -> Pruner | None:
        return None
