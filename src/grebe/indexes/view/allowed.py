"""What may stand in an expression of a view: functions that give the same for the same arguments in every session that reads
values alike, load nothing, open nothing, and call nothing by its name. What is not here is refused when a view is made and never
executed when it is met in a log."""

_NUMBERS = """
    abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp expm1
    factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive pow power radians
    rint round sec sign signum sin sinh sqrt tan tanh unhex
    width_bucket bit_count bit_get getbit shiftleft shiftright shiftrightunsigned div
"""
_TEXTS = """
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains crc32 decode elt
    encode endswith find_in_set format_number initcap instr lcase left len length levenshtein like ilike rlike regexp
    regexp_like locate lower lpad ltrim md5 octet_length overlay position regexp_count regexp_extract regexp_instr
    regexp_replace regexp_substr replace reverse right rpad rtrim sha sha1 sha2 soundex split_part startswith substr
    substring substring_index translate trim ucase unbase64 upper url_decode url_encode parse_url
"""
_TIMES = """
    add_months date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff
    datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date
    make_timestamp minute month monthname months_between next_day quarter second timestamp timestamp_micros
    timestamp_millis timestamp_seconds to_date to_timestamp to_unix_timestamp to_utc_timestamp trunc unix_date
    unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year make_dt_interval make_ym_interval
"""
_OTHERS = """
    coalesce if ifnull isnan isnotnull isnull nanvl nullif nvl nvl2 nullifzero zeroifnull hash xxhash64 array map struct
    named_struct element_at get size cardinality array_contains bigint binary boolean decimal double float int smallint
    string tinyint raise_error
"""
FUNCTIONS = frozenset((*_NUMBERS.split(), *_TEXTS.split(), *_TIMES.split(), *_OTHERS.split()))
AGGREGATES = frozenset(("count", "sum", "min", "max"))
"""What a view keeps of a group."""
TYPES = frozenset(
    (
        *(
            "boolean",
            "byte",
            "tinyint",
            "short",
            "smallint",
            "int",
            "integer",
            "long",
            "bigint",
            "float",
            "real",
            "double",
        ),
        *("string", "binary", "date", "timestamp", "timestamp_ntz", "timestamp_ltz"),
    )
)
