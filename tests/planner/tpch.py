"""TPC-H at scale 1 on paper: the tables with their sizes as Parquet, a set of indexes, and the shapes of some of its queries."""

from collections.abc import Callable, Iterable

from grebe.planner.query import Aggregate, Join, Node, Project, Query, Settings, Sort
from grebe.planner.tables import KnownTable
from tests.planner.lake import MB, SETTINGS, Ask, Scanned, Source, covering

_MONEY = "decimal(12,2)"
_DAYS = (8036, 10562)  # 1992-01-02 to 1998-12-01

LINEITEM = Source(
    "lineitem",
    {
        **dict.fromkeys(("l_orderkey", "l_partkey", "l_suppkey"), "long"),
        "l_linenumber": "integer",
        **dict.fromkeys(("l_quantity", "l_extendedprice", "l_discount", "l_tax"), _MONEY),
        **dict.fromkeys(("l_returnflag", "l_linestatus"), "string"),
        **dict.fromkeys(("l_shipdate", "l_commitdate", "l_receiptdate"), "date"),
        **dict.fromkeys(("l_shipinstruct", "l_shipmode", "l_comment"), "string"),
    },
    6_001_215,
    220 * MB,
)
ORDERS = Source(
    "orders",
    {
        **dict.fromkeys(("o_orderkey", "o_custkey"), "long"),
        "o_orderstatus": "string",
        "o_totalprice": _MONEY,
        "o_orderdate": "date",
        **dict.fromkeys(("o_orderpriority", "o_clerk"), "string"),
        "o_shippriority": "integer",
        "o_comment": "string",
    },
    1_500_000,
    58 * MB,
)
CUSTOMER = Source(
    "customer",
    {
        "c_custkey": "long",
        **dict.fromkeys(("c_name", "c_address"), "string"),
        "c_nationkey": "long",
        "c_phone": "string",
        "c_acctbal": _MONEY,
        **dict.fromkeys(("c_mktsegment", "c_comment"), "string"),
    },
    150_000,
    12 * MB,
    2,
)
PART = Source(
    "part",
    {
        "p_partkey": "long",
        **dict.fromkeys(("p_name", "p_mfgr", "p_brand", "p_type"), "string"),
        "p_size": "integer",
        "p_container": "string",
        "p_retailprice": _MONEY,
        "p_comment": "string",
    },
    200_000,
    7 * MB,
    2,
)
PARTSUPP = Source(
    "partsupp",
    {
        "ps_partkey": "long",
        "ps_suppkey": "long",
        "ps_availqty": "integer",
        "ps_supplycost": _MONEY,
        "ps_comment": "string",
    },
    800_000,
    40 * MB,
    4,
)
SUPPLIER = Source(
    "supplier",
    {
        "s_suppkey": "long",
        **dict.fromkeys(("s_name", "s_address"), "string"),
        "s_nationkey": "long",
        "s_phone": "string",
        "s_acctbal": _MONEY,
        "s_comment": "string",
    },
    10_000,
    1 * MB,
    1,
)
NATION = Source("nation", {"n_nationkey": "long", "n_name": "string", "n_regionkey": "long"}, 25, 2_000, 1)
REGION = Source("region", {"r_regionkey": "long", "r_name": "string"}, 5, 1_000, 1)

_AMOUNTS = ("l_quantity", "l_extendedprice", "l_discount", "l_shipdate")


def indexed(*, buckets: int = 8) -> dict[str, Source]:
    """All tables, with the indexes that someone who knows the queries would make; three or four a table that is joined a lot."""
    lineitem = LINEITEM.having(
        covering(
            LINEITEM,
            "l_by_order",
            ["l_orderkey"],
            ["l_partkey", "l_suppkey", *_AMOUNTS],
            buckets=buckets,
            bytes=95 * MB,
        ),
        covering(
            LINEITEM,
            "l_by_part",
            ["l_partkey"],
            ["l_orderkey", "l_suppkey", *_AMOUNTS],
            buckets=buckets,
            bytes=100 * MB,
        ),
        covering(
            LINEITEM,
            "l_by_supp",
            ["l_suppkey"],
            ["l_orderkey", "l_partkey", *_AMOUNTS],
            buckets=buckets,
            bytes=100 * MB,
        ),
        covering(
            LINEITEM,
            "l_by_ship",
            ["l_shipdate"],
            ["l_quantity", "l_extendedprice", "l_discount"],
            buckets=0,
            bytes=50 * MB,
            between=_DAYS,
        ),
    )
    orders = ORDERS.having(
        covering(
            ORDERS,
            "o_by_order",
            ["o_orderkey"],
            ["o_custkey", "o_orderdate", "o_shippriority"],
            buckets=buckets,
            bytes=16 * MB,
        ),
        covering(
            ORDERS,
            "o_by_cust",
            ["o_custkey"],
            ["o_orderkey", "o_orderdate", "o_shippriority"],
            buckets=buckets,
            bytes=16 * MB,
        ),
        covering(
            ORDERS,
            "o_by_date",
            ["o_orderdate"],
            ["o_orderkey", "o_custkey", "o_shippriority"],
            buckets=0,
            bytes=15 * MB,
            between=(8035, 10440),
        ),
    )
    customer = CUSTOMER.having(
        covering(CUSTOMER, "c_by_cust", ["c_custkey"], ["c_nationkey", "c_mktsegment"], buckets=buckets, bytes=1 * MB),
        covering(CUSTOMER, "c_by_nation", ["c_nationkey"], ["c_custkey"], buckets=buckets, bytes=1 * MB),
        covering(CUSTOMER, "c_by_segment", ["c_mktsegment"], ["c_custkey"], buckets=0, bytes=1 * MB),
    )
    part = PART.having(
        covering(
            PART,
            "p_by_part",
            ["p_partkey"],
            ["p_brand", "p_container", "p_type", "p_name"],
            buckets=buckets,
            bytes=3 * MB,
        ),
        covering(PART, "p_by_type", ["p_type"], ["p_partkey"], buckets=0, bytes=1 * MB),
        covering(PART, "p_by_brand", ["p_brand"], ["p_partkey", "p_container"], buckets=0, bytes=1 * MB),
    )
    partsupp = PARTSUPP.having(
        covering(
            PARTSUPP,
            "ps_by_part",
            ["ps_partkey"],
            ["ps_suppkey", "ps_supplycost", "ps_availqty"],
            buckets=buckets,
            bytes=8 * MB,
        ),
        covering(
            PARTSUPP,
            "ps_by_supp",
            ["ps_suppkey"],
            ["ps_partkey", "ps_supplycost", "ps_availqty"],
            buckets=buckets,
            bytes=8 * MB,
        ),
    )
    supplier = SUPPLIER.having(
        covering(SUPPLIER, "s_by_supp", ["s_suppkey"], ["s_nationkey", "s_name"], buckets=buckets, bytes=200_000),
        covering(SUPPLIER, "s_by_nation", ["s_nationkey"], ["s_suppkey"], buckets=buckets, bytes=150_000),
        covering(SUPPLIER, "s_by_name", ["s_name"], ["s_suppkey"], buckets=0, bytes=150_000),
    )
    return {one.name: one for one in (lineitem, orders, customer, part, partsupp, supplier, NATION, REGION)}


def _join(left: Node, right: Node, *keys: tuple[int | None, int | None], kind: str = "Inner") -> Join:
    return Join(kind, left, right, tuple(key for key, _ in keys), tuple(key for _, key in keys))


def _grouped(ask: Ask, child: Node, keys: Iterable[int | None], functions: int = 1) -> Node:
    keys = tuple(keys)
    outputs = {ask.fresh(): key for key in keys if key is not None}
    return Aggregate(child, keys, outputs, ("sum(x)",) * functions)


def _lineitem(ask: Ask, lake: dict[str, Source], columns: Iterable[str], where: str) -> Scanned:
    return ask.scan(lake["lineitem"], columns, where)


def q3(ask: Ask, lake: dict[str, Source]) -> Node:
    c = ask.scan(lake["customer"], ["c_custkey", "c_mktsegment"], "c_mktsegment = 'BUILDING' AND c_custkey IS NOT NULL")
    o = ask.scan(
        lake["orders"],
        ["o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"],
        "o_orderdate < DATE '1995-03-15' AND o_custkey IS NOT NULL AND o_orderkey IS NOT NULL",
    )
    line = _lineitem(
        ask,
        lake,
        ["l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"],
        "l_shipdate > DATE '1995-03-15' AND l_orderkey IS NOT NULL",
    )
    two = Project(_join(c.node, o.node, (c["c_custkey"], o["o_custkey"])), {})
    three = Project(_join(two, line.node, (o["o_orderkey"], line["l_orderkey"])), {})
    return Sort(_grouped(ask, three, [line["l_orderkey"], o["o_orderdate"], o["o_shippriority"]]), (None,), True)


def q5(ask: Ask, lake: dict[str, Source]) -> Node:
    c = ask.scan(lake["customer"], ["c_custkey", "c_nationkey"], "c_custkey IS NOT NULL AND c_nationkey IS NOT NULL")
    o = ask.scan(
        lake["orders"],
        ["o_orderkey", "o_custkey", "o_orderdate"],
        "o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
    )
    line = _lineitem(
        ask,
        lake,
        ["l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"],
        "l_orderkey IS NOT NULL AND l_suppkey IS NOT NULL",
    )
    s = ask.scan(lake["supplier"], ["s_suppkey", "s_nationkey"])
    n = ask.scan(lake["nation"], ["n_nationkey", "n_name", "n_regionkey"])
    r = ask.scan(lake["region"], ["r_regionkey", "r_name"], "r_name = 'ASIA'")
    tree: Node = _join(c.node, o.node, (c["c_custkey"], o["o_custkey"]))
    tree = _join(tree, line.node, (o["o_orderkey"], line["l_orderkey"]))
    tree = _join(tree, s.node, (line["l_suppkey"], s["s_suppkey"]), (c["c_nationkey"], s["s_nationkey"]))
    tree = _join(tree, n.node, (s["s_nationkey"], n["n_nationkey"]))
    tree = _join(tree, r.node, (n["n_regionkey"], r["r_regionkey"]))
    return Sort(_grouped(ask, tree, [n["n_name"]]), (None,), True)


def q8(ask: Ask, lake: dict[str, Source]) -> Node:
    p = ask.scan(lake["part"], ["p_partkey", "p_type"], "p_type = 'ECONOMY ANODIZED STEEL' AND p_partkey IS NOT NULL")
    line = _lineitem(
        ask, lake, ["l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_discount"], "l_partkey IS NOT NULL"
    )
    s = ask.scan(lake["supplier"], ["s_suppkey", "s_nationkey"])
    o = ask.scan(
        lake["orders"],
        ["o_orderkey", "o_custkey", "o_orderdate"],
        "o_orderdate >= DATE '1995-01-01' AND o_orderdate <= DATE '1996-12-31'",
    )
    c = ask.scan(lake["customer"], ["c_custkey", "c_nationkey"])
    n1 = ask.scan(lake["nation"], ["n_nationkey", "n_regionkey"])
    n2 = ask.scan(lake["nation"], ["n_nationkey", "n_name"])
    r = ask.scan(lake["region"], ["r_regionkey", "r_name"], "r_name = 'AMERICA'")
    tree: Node = _join(p.node, line.node, (p["p_partkey"], line["l_partkey"]))
    tree = _join(tree, s.node, (line["l_suppkey"], s["s_suppkey"]))
    tree = _join(tree, o.node, (line["l_orderkey"], o["o_orderkey"]))
    tree = _join(tree, c.node, (o["o_custkey"], c["c_custkey"]))
    tree = _join(tree, n1.node, (c["c_nationkey"], n1["n_nationkey"]))
    tree = _join(tree, n2.node, (s["s_nationkey"], n2["n_nationkey"]))
    tree = _join(tree, r.node, (n1["n_regionkey"], r["r_regionkey"]))
    return Sort(_grouped(ask, tree, [None], 2), (None,), True)


def q9(ask: Ask, lake: dict[str, Source]) -> Node:
    p = ask.scan(lake["part"], ["p_partkey", "p_name"], "p_name LIKE '%green%'")
    line = _lineitem(
        ask,
        lake,
        ["l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount"],
        "l_partkey IS NOT NULL AND l_suppkey IS NOT NULL",
    )
    s = ask.scan(lake["supplier"], ["s_suppkey", "s_nationkey"])
    ps = ask.scan(lake["partsupp"], ["ps_partkey", "ps_suppkey", "ps_supplycost"])
    o = ask.scan(lake["orders"], ["o_orderkey", "o_orderdate"])
    n = ask.scan(lake["nation"], ["n_nationkey", "n_name"])
    tree: Node = _join(p.node, line.node, (p["p_partkey"], line["l_partkey"]))
    tree = _join(tree, s.node, (line["l_suppkey"], s["s_suppkey"]))
    tree = _join(tree, ps.node, (line["l_suppkey"], ps["ps_suppkey"]), (line["l_partkey"], ps["ps_partkey"]))
    tree = _join(tree, o.node, (line["l_orderkey"], o["o_orderkey"]))
    tree = _join(tree, n.node, (s["s_nationkey"], n["n_nationkey"]))
    return Sort(_grouped(ask, tree, [n["n_name"], None]), (None,), True)


def q17(ask: Ask, lake: dict[str, Source]) -> Node:
    line = _lineitem(ask, lake, ["l_partkey", "l_quantity", "l_extendedprice"], "l_partkey IS NOT NULL")
    p = ask.scan(
        lake["part"], ["p_partkey", "p_brand", "p_container"], "p_brand = 'Brand#23' AND p_container = 'MED BOX'"
    )
    inner = _lineitem(ask, lake, ["l_partkey", "l_quantity"], "l_partkey IS NOT NULL")
    average = Project(_grouped(ask, inner.node, [inner["l_partkey"]]), {})
    two = _join(line.node, p.node, (line["l_partkey"], p["p_partkey"]))
    three = _join(two, average, (p["p_partkey"], inner["l_partkey"]))
    return Aggregate(three, (), {}, ("sum(x)",))


QUERIES: dict[str, Callable[[Ask, dict[str, Source]], Node]] = {"q3": q3, "q5": q5, "q8": q8, "q9": q9, "q17": q17}


def asked(name: str, settings: Settings = SETTINGS, *, buckets: int = 8) -> tuple[Query, dict[str, KnownTable]]:
    ask = Ask(settings)
    root = QUERIES[name](ask, indexed(buckets=buckets))
    return ask.query(root), ask.tables
