"""RDB, the server's format for values outside of it: DUMP payloads and files.

`codec` has the alphabet, `packed` the small collections that are strings, `objects` and `streams` the values,
`payload` what DUMP answers and RESTORE takes, `file` whole keyspaces; `crc64` and `lzf` are what their names say.
Both directions agree with Valkey 9.1, which writes version 80 of the format, and reads it and those up to 11; numbers
between mean formats of other servers. Nothing here knows a command, and nothing but `file` touches the disk.

Whatever is wrong with what is read is an `RdbError`, and then nothing has changed.
"""
