"""What plans cost, in milliseconds on the cores that there are. The figures compare plans with each other; they are no promise.

All constants are in `Rates`, in seconds of one core. They were measured with PySpark 4.1 on two cores over local files: sums over
Parquet and CSV, `repartition` with and without `sortWithinPartitions`, group-bys of few and of many groups, merge joins over
bucketed tables, and a job of 2,000 empty tasks. Those of shuffles, sorts, joins and aggregate functions lie between such single
steps and the 22 queries of TPC-H at scale 1, where what an index saves is right within a factor of 2 for four fifths of the cases.
"""

import math
from dataclasses import dataclass, field

from grebe.planner.query import Settings


@dataclass(frozen=True, slots=True)
class Rates:
    columnar_byte: float = 4e-9
    """Reading and unpacking a stored byte of a columnar format."""
    text_byte: float = 37e-9
    """Parsing a byte of CSV."""
    json_byte: float = 45e-9
    row_format_byte: float = 15e-9
    """Of formats that store whole rows in binary form."""
    row_scanned: float = 40e-9
    value_scanned: float = 15e-9
    """Decoding one value of a row."""
    local_open: float = 3.5e-3
    """Opening a file and reading its footer."""
    remote_open: float = 40e-3
    """The same in an object store, where it is some requests."""
    remote_content_open: float = 15e-3
    """The same of an index, which takes fewer (`grebe.spark.IndexFiles`)."""
    task: float = 2.5e-3
    stage: float = 12e-3
    """A shuffle is one more stage to plan, to start and to wait for; elapsed."""
    shuffled_row: float = 170e-9
    shuffled_byte: float = 5e-9
    """Written, sent and read again."""
    sorted_row: float = 10e-9
    """Times the binary logarithm of the rows that are sorted together."""
    merged_row: float = 60e-9
    """Taking the next row from several sorted runs."""
    joined_row: float = 100e-9
    """A row of either side of a merge join."""
    probed_row: float = 75e-9
    """A row looked up in a table of hashes."""
    hashed_row: float = 60e-9
    """A row added to one of few groups."""
    hashed_row_of_many: float = 350e-9
    """The same where the groups do not fit into the processor's cache."""
    many_groups: float = 50_000
    computed: float = 80e-9
    """One operation on one value: to add it to a sum, or within what is summed up. Of decimals, which take twice as long as
    floating point numbers."""
    produced_row: float = 30e-9
    broadcast: float = 30e-3
    """Collecting and sending a small table; on the driver, so that cores do not share it."""
    broadcast_byte: float = 30e-9
    dropped_row: float = 15e-9
    """Checking by lineage whether a row's file is one of the query's."""
    stand_in: float = 2e-3
    """Putting one stand-in into a plan; elapsed."""
    doubt: float = 0.05
    """By so much of a scan's cost a stand-in must be better: what is not modelled must not make a query slower."""
    margin: float = 0.1
    """By so much the whole plan must be cheaper than without any index: what is saved is believed to within a factor of 2."""
    inquiry: float = 2e-3
    """Asking an index about a predicate; elapsed, on the driver."""
    entry: float = 120e-9
    """Reading one entry of an index that prunes."""
    key: float = 20e-6
    """Looking up one of many keys of a join."""
    inquiry_share: float = 0.1
    """Of a scan's cost, what may be spent on entries that may turn out to leave no file out."""
    pruned_unit_rows: float = 4_000
    """Rows of a page: the least that is read of a sorted file."""
    curve_unit_rows: float = 1_000
    """The same of a file whose rows lie along a curve."""


MEASURED = Rates()

_MILLISECONDS = 1e3
_COLUMNAR = frozenset({"parquet", "orc", "delta", "iceberg", "hudi"})
_REMOTE = ("s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:", "az:", "wasb:", "wasbs:", "https:", "http:")
_SPLIT = 128 * 1024 * 1024
_OPEN_BYTES = 4 * 1024 * 1024
_ADVISED_BYTES = 64 * 1024 * 1024


def is_columnar(format_name: str) -> bool:
    return format_name in _COLUMNAR


@dataclass(frozen=True, slots=True)
class Meter:
    """The cost of single steps under some settings. Work is shared by the cores as far as there are partitions for them."""

    settings: Settings
    rates: Rates = field(default=MEASURED)

    def spread(self, partitions: float) -> float:
        """Elapsed time for one unit of work: of 3 partitions on 2 cores, one is left for the end. More even out."""
        cores = self.settings.cores
        if partitions <= 1:
            return 1.0
        return math.ceil(partitions / cores) / partitions if partitions <= 2 * cores else 1.0 / cores

    def byte_rate(self, format_name: str) -> float:
        rates = self.rates
        if format_name in _COLUMNAR:
            return rates.columnar_byte
        return {"csv": rates.text_byte, "text": rates.text_byte, "json": rates.json_byte}.get(
            format_name, rates.row_format_byte
        )

    def open_rate(self, uri: str) -> float:
        return self.rates.remote_open if uri.startswith(_REMOTE) else self.rates.local_open

    def content_open_rate(self, uri: str) -> float:
        return self.rates.remote_content_open if uri.startswith(_REMOTE) else self.rates.local_open

    def scan_tasks(self, size: float, files: int) -> int:
        """As Spark packs files into tasks: small files count for more than they are, large ones are split."""
        padded = size + files * _OPEN_BYTES
        split = min(_SPLIT, max(_OPEN_BYTES, padded / self.settings.cores))
        return max(1, min(math.ceil(padded / split), files + int(size / split)))

    def scan(
        self,
        size: float,
        rows: float,
        columns: int,
        files: float,
        tasks: float,
        byte_rate: float,
        open_rate: float,
    ) -> float:
        each_row = self.rates.row_scanned + columns * self.rates.value_scanned
        work = size * byte_rate + rows * each_row + files * open_rate
        return _MILLISECONDS * (work * self.spread(tasks) + self._tasks(tasks))

    def shuffled_partitions(self, size: float) -> int:
        """Into how many tasks Spark's own shuffles end: adaptive execution joins small partitions."""
        if not self.settings.adaptive:
            return self.settings.shuffle_partitions
        return max(1, min(self.settings.shuffle_partitions, max(self.settings.cores, int(size / _ADVISED_BYTES))))

    def shuffle(self, rows: float, width: float, partitions: int) -> float:
        """Work before the shuffle is taken to use all cores."""
        work = rows * (self.rates.shuffled_row + width * self.rates.shuffled_byte)
        shared = work / 2 * (1.0 / self.settings.cores + self.spread(partitions))
        return _MILLISECONDS * (self.rates.stage + shared + self._tasks(partitions))

    def sort(self, rows: float, partitions: float) -> float:
        together = max(2.0, rows / max(1.0, partitions))
        return self._rows(rows * math.log2(together), self.rates.sorted_row, partitions)

    def merge(self, rows: float, partitions: float) -> float:
        return self._rows(rows, self.rates.merged_row, partitions)

    def merge_join(self, rows: float, produced: float, partitions: float) -> float:
        return self._rows(rows, self.rates.joined_row, partitions) + self.produce(produced, partitions)

    def probe(self, rows: float, produced: float, partitions: float) -> float:
        return self._rows(rows, self.rates.probed_row, partitions) + self.produce(produced, partitions)

    def produce(self, rows: float, partitions: float) -> float:
        return self._rows(rows, self.rates.produced_row, partitions)

    def group(self, rows: float, groups: float, partitions: float) -> float:
        many = groups / max(1.0, partitions) > self.rates.many_groups
        return self._rows(rows, self.rates.hashed_row_of_many if many else self.rates.hashed_row, partitions)

    def compute(self, rows: float, operations: int, partitions: float) -> float:
        return self._rows(rows * operations, self.rates.computed, partitions)

    def drop(self, rows: float, partitions: float) -> float:
        return self._rows(rows, self.rates.dropped_row, partitions)

    def broadcast(self, rows: float, width: float) -> float:
        return _MILLISECONDS * (self.rates.broadcast + rows * width * self.rates.broadcast_byte)

    def stand_in(self, scan: float) -> float:
        return _MILLISECONDS * self.rates.stand_in + scan * self.rates.doubt

    def affordable(self, scan: float) -> float:
        """Entries that may be read in the hope to make a scan of this cost cheaper; less than 0: not even asking pays."""
        rates = self.rates
        left = scan / _MILLISECONDS * rates.inquiry_share
        if left * 2 < rates.inquiry:
            return -1.0
        return left / rates.entry if rates.entry else math.inf

    def lookup(self, keys: float) -> float:
        return _MILLISECONDS * (self.rates.inquiry + keys * self.rates.key)

    def _tasks(self, tasks: float) -> float:
        return tasks * self.rates.task / self.settings.cores

    def _rows(self, rows: float, rate: float, partitions: float) -> float:
        return _MILLISECONDS * rows * rate * self.spread(partitions)
