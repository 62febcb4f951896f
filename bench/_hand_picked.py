"""Indexes that somebody who knows the queries of TPC-DS would pick by hand: facts in the order of their dates, keys of joins in
buckets, with the columns that most queries read. (Those of TPC-H are in `bench/tpch.py`.)"""

import grebe


def _fact(table: str, short: str, customer: str, more: str) -> list[grebe.Covering]:
    money = (
        f"{short}_quantity {short}_list_price {short}_sales_price {short}_ext_sales_price {short}_net_profit".split()
    )
    keys = [f"{short}_item_sk", customer, *more.split()]
    dated = f"{short}_sold_date_sk"
    return [
        grebe.Covering(f"{table}_by_date", on=[dated], include=[*keys, *money], buckets=0),
        grebe.Covering(f"{table}_by_item", on=keys[:1], include=[dated, *keys[1:], *money]),
    ]


TPCDS = {
    "store_sales": _fact("store_sales", "ss", "ss_customer_sk", "ss_store_sk ss_ticket_number ss_hdemo_sk"),
    "catalog_sales": _fact("catalog_sales", "cs", "cs_bill_customer_sk", "cs_order_number cs_ship_date_sk"),
    "web_sales": _fact("web_sales", "ws", "ws_bill_customer_sk", "ws_order_number"),
    "inventory": [
        grebe.Covering(
            "inventory_by_date",
            on=["inv_date_sk"],
            include=["inv_item_sk", "inv_warehouse_sk", "inv_quantity_on_hand"],
            buckets=0,
        )
    ],
    "customer": [
        grebe.Covering(
            "customer_by_key",
            on=["c_customer_sk"],
            include=["c_customer_id", "c_current_addr_sk", "c_current_cdemo_sk", "c_first_name", "c_last_name"],
        )
    ],
    "item": [
        grebe.Covering(
            "item_by_key",
            on=["i_item_sk"],
            include=[
                "i_item_id",
                "i_item_desc",
                "i_category",
                "i_class",
                "i_brand",
                "i_current_price",
                "i_manufact_id",
            ],
        )
    ],
}
