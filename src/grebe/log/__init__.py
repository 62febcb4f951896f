"""The operation log of one table and all its indexes: every change of state is one atomic commit.

Read in this order: `entry` (what is written), `states` (what entries add up to), `invariants` (what must hold), `codec` (bytes),
`snapshot` (reading), `commit` (writing), `operation` (begin, work, end), `liveness` (is its writer still there), `registration`
(files get their ids). docs/internals/log.md is the same in prose.
"""
