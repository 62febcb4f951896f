"""Hadoop's SequenceFile as a record format of Grebe: pairs of a key and a value, plain or compressed by record or by block."""

from .format import SEQUENCE_FILE

__all__ = ["SEQUENCE_FILE"]
