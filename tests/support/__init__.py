"""What several groups of tests share: the wire format, the live server, the endpoints compared with it."""
