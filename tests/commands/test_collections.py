"""Lists, sets and sorted sets where one conversation with the server cannot tell: chance, whole scans, large values."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from emuredis import Emulator, ManualClock
from emuredis.client import Client

MEMBERS = [b"m%d" % number for number in range(500)]


def client(seed: int = 1) -> Client:
    return Emulator(clock=ManualClock(), seed=seed).client()


def filled(seed: int = 1) -> Client:
    made = client(seed)
    made.call("SADD", "s", *MEMBERS)
    made.call("ZADD", "z", *[part for n, member in enumerate(MEMBERS) for part in (n, member)])
    return made


CHANCE = [
    ("SRANDMEMBER", "s"),
    ("SRANDMEMBER", "s", 20),
    ("SRANDMEMBER", "s", -20),
    ("SPOP", "s"),
    ("SPOP", "s", 20),
    ("ZRANDMEMBER", "z"),
    ("ZRANDMEMBER", "z", 20, "WITHSCORES"),
    ("ZRANDMEMBER", "z", -20),
]


@pytest.mark.parametrize("call", CHANCE)
def test_chance_repeats_with_the_seed(call: tuple[object, ...]) -> None:
    one, other, third = filled(5).call(*call), filled(5).call(*call), filled(6).call(*call)
    assert one == other
    assert one != third


@pytest.mark.parametrize("name", ["SRANDMEMBER", "ZRANDMEMBER"])
def test_counts_mean_distinct_or_repeated(name: str) -> None:
    redis = filled()
    key = "s" if name[0] == "S" else "z"
    distinct = redis.call(name, key, 400)
    assert len(distinct) == len(set(distinct)) == 400 and set(distinct) <= set(MEMBERS)
    repeated = redis.call(name, key, -2000)
    assert len(repeated) == 2000 and set(repeated) <= set(MEMBERS)
    counts = Counter(repeated)
    assert max(counts.values()) < 20 and len(counts) > 450


def test_spop_takes_each_member_once() -> None:
    redis = filled()
    taken = [redis.call("SPOP", "s") for _ in range(250)]
    taken += redis.call("SPOP", "s", 1000)
    assert sorted(taken) == sorted(MEMBERS)
    assert redis.call("EXISTS", "s") == 0


@pytest.mark.parametrize(("name", "key", "step"), [("SSCAN", "s", 1), ("ZSCAN", "z", 2)])
def test_a_scan_visits_what_stays_exactly_once(name: str, key: str, step: int) -> None:
    redis, rng = filled(), random.Random(3)
    stays = set(MEMBERS[:300])
    seen: Counter[bytes] = Counter()
    cursor = b"0"
    while True:
        cursor, page = redis.call(name, key, cursor, "COUNT", 17)
        seen.update(page[::step])
        if cursor == b"0":
            break
        gone, new = rng.choice(MEMBERS[300:]), b"new%d" % rng.randrange(1000)
        redis.call("SREM" if key == "s" else "ZREM", key, gone)
        redis.call("SADD", "s", new) if key == "s" else redis.call("ZADD", "z", 1, new)
    assert all(seen[member] == 1 for member in stays)


def test_list_operations_agree_with_a_python_list() -> None:
    redis, rng = client(), random.Random(4)
    model: list[bytes] = []
    for step in range(3000):
        word = b"%d" % rng.randrange(30) * rng.choice([1, 1, 40])
        kind = rng.randrange(6)
        if kind < 3:
            assert redis.call("RPUSH", "l", word, b"%d" % step) == len(model) + 2
            model += [word, b"%d" % step]
        elif kind == 3:
            count = rng.choice([1, 1, 2, 0, -1])
            assert redis.call("LREM", "l", count, word) == _remove(model, word, count)
        elif kind == 4:
            assert redis.call("LPOP", "l") == (model.pop(0) if model else None)
        elif model:
            index = rng.randrange(len(model))
            assert redis.call("LSET", "l", index, word) == b"OK"
            model[index] = word
    assert redis.call("LRANGE", "l", 0, -1) == model


def _remove(model: list[bytes], word: bytes, count: int) -> int:
    wanted = abs(count) or len(model)
    places = [place for place, other in enumerate(model) if other == word]
    chosen = places[-wanted:] if count < 0 else places[:wanted]
    for place in reversed(chosen):
        del model[place]
    return len(chosen)
