"""echomq: a job queue on Valkey, wire-compatible with the Elixir library EchoMQ.

    >>> import echomq
    >>> jobs = echomq.Jobs(echomq.connect("emuredis://"), "mail")
    >>> job_id = jobs.add(b"hello")
    >>> jobs.claim(lease_ms=30_000).payload
    b'hello'

Jobs live on the server and move by scripts, one script a transition. `Consumer` serves them; `Lanes`
share a queue fairly between groups. Any server URL will do: `emuredis://` (inside this process, the
default), `redis://`, `valkey://`, `unix://`.
"""

from .admin import Admin
from .backoff import Backoff, Exponential, Fixed, Jitter
from .batch import BatchConsumer, Shape
from .clock import ManualClock, SystemClock
from .connection import Connection
from .consumer import Consumer, ConsumerThread
from .endpoint import WIRE_VERSION, Endpoint, Options, connect
from .errors import ArgumentError, EchoError, ServerError, Verdict
from .ids import Minter
from .jobs import Job, Jobs
from .lanes import Lanes
from .machine import Runner
from .metrics import Metrics
from .metronome import Queue
from .outcomes import Delay, Done, Failed
from .pool import Pool
from .repeat import Repeat
from .script import Scripts
from .steps import Link
from .streams import MaxLen, MinId, StreamConsumer, StreamRetention, Streams

__all__ = [
    "WIRE_VERSION",
    "Admin",
    "ArgumentError",
    "Backoff",
    "BatchConsumer",
    "Connection",
    "Consumer",
    "ConsumerThread",
    "Delay",
    "Done",
    "EchoError",
    "Endpoint",
    "Exponential",
    "Failed",
    "Fixed",
    "Jitter",
    "Job",
    "Jobs",
    "Lanes",
    "Link",
    "ManualClock",
    "MaxLen",
    "Metrics",
    "MinId",
    "Minter",
    "Options",
    "Pool",
    "Queue",
    "Repeat",
    "Runner",
    "Scripts",
    "ServerError",
    "Shape",
    "StreamConsumer",
    "StreamRetention",
    "Streams",
    "SystemClock",
    "Verdict",
    "connect",
]
