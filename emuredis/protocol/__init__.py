"""The wire: request bytes to argv lists, neutral replies to bytes or to what a client would have parsed.

Nothing in here knows the engine, a socket or a client library: `decode` is fed bytes and yields commands,
`encode` turns a reply into RESP2 or RESP3 bytes, `views` into Python objects, so that the three cannot
disagree about a reply's shape.
"""
