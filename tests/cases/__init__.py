"""Cases made after faults that users met in other tools, with the answers of a live Valkey 9.1.2.

``bugs.jsonl``: several clients, RESP2 or RESP3, each after a public report (its ``source``). ``probes.jsonl``: one
command after a set-up. ``scenarios.jsonl``: blocking order, WATCH, notifications, pub/sub. `notation` says how replies
are written, `runner` what a step means. ``outside.txt`` names the cases that need commands emuredis does not have.
"""
