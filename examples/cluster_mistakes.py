"""Hash-tag mistakes, found in a unit test: code that works on one server and fails on a cluster.

Run it with ``python examples/cluster_mistakes.py``.
"""

from __future__ import annotations

import emuredis

CHECKOUT = """
local total = redis.call('HGET', KEYS[1], 'total')
redis.call('RPUSH', 'invoices', total)   -- a key that is not among KEYS
return redis.call('DEL', KEYS[1])
"""


def mistakes(emulator: emuredis.Emulator) -> dict[str, str]:
    """What goes wrong, and what the cluster says of it."""
    cluster = emulator.cluster
    assert cluster is not None, "Emulator(cluster=3), or there is nothing to find"
    cart, stock = "cart:7", "stock:7"  # of one order, and yet in two slots
    cluster.node_of(cart).client().call("HSET", cart, "total", 3)
    told: dict[str, str] = {}

    def attempt(what: str, key: str, *words: str | int) -> None:
        client = cluster.node_of(key).client()  # as a cluster client would choose it
        try:
            client.call(*words)
        except emuredis.ReplyError as error:
            told[what] = error.message

    attempt("two keys in one command", cart, "DEL", cart, stock)
    attempt("two keys in one script", cart, "EVAL", CHECKOUT, 2, cart, stock)
    attempt("a key that a script does not declare", cart, "EVAL", CHECKOUT, 1, cart)
    with cluster.node_of(cart).client() as client:
        client.call("MULTI")
        try:
            client.call("HSET", cart, "total", 3)
            client.call("DECR", stock)
            client.call("EXEC")
        except emuredis.ReplyError as error:
            told["two keys in one transaction"] = error.message
    return told


def repaired(emulator: emuredis.Emulator) -> int:
    """With a hash tag all keys of the order are in one slot, and the script declares every key it touches."""
    cart, invoices = "{order:7}:cart", "{order:7}:invoices"
    assert emulator.cluster is not None
    client = emulator.cluster.node_of(cart).client()
    client.call("HSET", cart, "total", 3)
    return int(client.call("EVAL", CHECKOUT.replace("'invoices'", "KEYS[2]"), 2, cart, invoices))


if __name__ == "__main__":
    for what, error in mistakes(emuredis.Emulator(cluster=3)).items():
        print(f"{what}: {error}")
    print("repaired:", repaired(emuredis.Emulator(cluster=3)))
