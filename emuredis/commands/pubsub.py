"""Publish and subscribe: SUBSCRIBE and its kin, PUBLISH, PUBSUB.

A (un)subscription answers once per name, each time with a push that tells how many subscriptions are left: channels
and patterns are counted together, sharded channels for themselves. Messages travel through `emuredis.engine.pubsub`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from emuredis import errors
from emuredis.commands.help_texts import PUBSUB
from emuredis.errors import ReplyError
from emuredis.patterns import match
from emuredis.replies import Frames, Push, Reply, Status
from emuredis.spec import command, container

if TYPE_CHECKING:
    from emuredis.engine.session import Session

# -- subscribing -------------------------------------------------------------------------------


@command("SUBSCRIBE channel...", "pubsub noscript loading stale", group="pubsub", since="2.0.0",
         complexity="O(N), N being the number of channels", subscribed=True)  # fmt: skip
def subscribe(ctx: Session, argv: list[bytes]) -> Reply:
    """Listens to channels."""
    return _subscribe(ctx, "channels", b"subscribe", argv)


@command("PSUBSCRIBE pattern:pattern...", "pubsub noscript loading stale", group="pubsub", since="2.0.0",
         complexity="O(N), N being the number of patterns", subscribed=True)  # fmt: skip
def psubscribe(ctx: Session, argv: list[bytes]) -> Reply:
    """Listens to every channel whose name matches a pattern."""
    return _subscribe(ctx, "patterns", b"psubscribe", argv)


@command("SSUBSCRIBE shardchannel...", "pubsub noscript loading stale", keys="not_key @1..-1", group="pubsub",
         since="7.0.0", complexity="O(N), N being the number of shard channels", subscribed=True)  # fmt: skip
def ssubscribe(ctx: Session, argv: list[bytes]) -> Reply:
    """Listens to shard channels."""
    if ctx.deny_blocking:
        raise ReplyError("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
    return _subscribe(ctx, "shard_channels", b"ssubscribe", argv)


@command("UNSUBSCRIBE [channel...]", "pubsub noscript loading stale", group="pubsub", since="2.0.0",
         complexity="O(N), N being the number of channels", subscribed=True)  # fmt: skip
def unsubscribe(ctx: Session, argv: list[bytes]) -> Reply:
    """Stops listening to channels, to all when none is named."""
    return _unsubscribe(ctx, "channels", b"unsubscribe", argv)


@command("PUNSUBSCRIBE [pattern:pattern...]", "pubsub noscript loading stale", group="pubsub", since="2.0.0",
         complexity="O(N), N being the number of patterns", subscribed=True)  # fmt: skip
def punsubscribe(ctx: Session, argv: list[bytes]) -> Reply:
    """Stops listening to patterns, to all when none is named."""
    return _unsubscribe(ctx, "patterns", b"punsubscribe", argv)


@command("SUNSUBSCRIBE [shardchannel...]", "pubsub noscript loading stale", keys="not_key @1..-1", group="pubsub",
         since="7.0.0", complexity="O(N), N being the number of shard channels", subscribed=True)  # fmt: skip
def sunsubscribe(ctx: Session, argv: list[bytes]) -> Reply:
    """Stops listening to shard channels, to all when none is named."""
    return _unsubscribe(ctx, "shard_channels", b"sunsubscribe", argv)


def _subscribe(ctx: Session, kind: str, word: bytes, argv: list[bytes]) -> Reply:
    ctx.engine.publish_events()  # what came before, within a transaction, is not for this subscriber
    replies = Frames()
    for name in argv[1:]:
        ctx.engine.pubsub.subscribe(kind, ctx, name)
        replies.append(Push([word, name, _count(ctx, kind)]))
    return replies


def _unsubscribe(ctx: Session, kind: str, word: bytes, argv: list[bytes]) -> Reply:
    ctx.engine.publish_events()  # what came before, within a transaction, still is
    replies = Frames()
    for name in argv[1:] or list(getattr(ctx, kind)):
        ctx.engine.pubsub.unsubscribe(kind, ctx, name)
        replies.append(Push([word, name, _count(ctx, kind)]))
    # Without any subscription the server still answers once, naming none.
    return replies or Frames([Push([word, None, _count(ctx, kind)])])


def _count(ctx: Session, kind: str) -> int:
    return len(ctx.shard_channels) if kind == "shard_channels" else len(ctx.channels) + len(ctx.patterns)


# -- publishing --------------------------------------------------------------------------------


@command("PUBLISH channel message", "pubsub loading stale fast", group="pubsub", since="2.0.0",
         complexity="O(N+M), N subscribers of the channel and M patterns of anybody")  # fmt: skip
def publish(ctx: Session, argv: list[bytes]) -> Reply:
    """Sends a message to a channel; how many receive it."""
    engine = ctx.engine
    engine.publish_events()
    if engine.cluster is not None:
        engine.cluster.cluster.broadcast(engine.cluster, argv[1], argv[2])
    return engine.pubsub.publish(argv[1], argv[2])


@command("SPUBLISH shardchannel message", "pubsub loading stale fast", keys="not_key @1", group="pubsub",
         since="7.0.0", complexity="O(N), N subscribers of the shard channel")  # fmt: skip
def spublish(ctx: Session, argv: list[bytes]) -> Reply:
    """Sends a message to a shard channel; how many receive it."""
    ctx.engine.publish_events()
    return ctx.engine.pubsub.publish_shard(argv[1], argv[2])


# -- looking -----------------------------------------------------------------------------------

container("PUBSUB", "Commands that look at channels and their subscribers.", group="pubsub", since="2.8.0")


@command("PUBSUB CHANNELS [pattern:pattern]", "pubsub loading stale", group="pubsub", since="2.8.0",
         complexity="O(N), N channels, with short names and patterns")  # fmt: skip
def pubsub_channels(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the channels that have subscribers."""
    return _listed(ctx.engine.pubsub.channels, argv)


@command("PUBSUB SHARDCHANNELS [pattern:pattern]", "pubsub loading stale", group="pubsub", since="7.0.0",
         complexity="O(N), N shard channels, with short names and patterns")  # fmt: skip
def pubsub_shardchannels(ctx: Session, argv: list[bytes]) -> Reply:
    """Lists the shard channels that have subscribers."""
    return _listed(ctx.engine.pubsub.shard_channels, argv)


@command("PUBSUB NUMPAT", "pubsub loading stale", group="pubsub", since="2.8.0", complexity="O(1)")
def pubsub_numpat(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the distinct patterns that anybody is subscribed to."""
    return len(ctx.engine.pubsub.patterns)


@command("PUBSUB NUMSUB [channel...]", "pubsub loading stale", group="pubsub", since="2.8.0",
         complexity="O(N), N being the number of channels asked for")  # fmt: skip
def pubsub_numsub(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the subscribers of channels, patterns left out."""
    return _counted(ctx.engine.pubsub.channels, argv)


@command("PUBSUB SHARDNUMSUB [shardchannel...]", "pubsub loading stale", group="pubsub", since="7.0.0",
         complexity="O(N), N being the number of shard channels asked for")  # fmt: skip
def pubsub_shardnumsub(ctx: Session, argv: list[bytes]) -> Reply:
    """Counts the subscribers of shard channels."""
    return _counted(ctx.engine.pubsub.shard_channels, argv)


@command("PUBSUB HELP", "loading stale", group="pubsub", since="6.2.0", complexity="O(1)")
def pubsub_help(ctx: Session, argv: list[bytes]) -> Reply:
    """Tells about the subcommands."""
    return [Status(line) for line in PUBSUB]


def _listed(channels: Iterable[bytes], argv: list[bytes]) -> Reply:
    if len(argv) > 3:
        shown = errors.shown(argv[1], 128)
        raise ReplyError(
            f"ERR unknown subcommand or wrong number of arguments for '{shown}'. Try PUBSUB HELP."
        )
    if len(argv) == 2:
        return list(channels)
    return [channel for channel in channels if match(argv[2], channel)]


def _counted(channels: dict[bytes, dict[Session, None]], argv: list[bytes]) -> Reply:
    return [item for name in argv[2:] for item in (name, len(channels.get(name, ())))]
