"""What the HELP subcommands answer: the server's own lines.

Subcommands that the emulator refuses by name are listed too, as these are the texts a client may compare.
"""

from __future__ import annotations

__all__ = [
    "CLIENT",
    "CLUSTER",
    "COMMAND",
    "COMMANDLOG",
    "CONFIG",
    "DEBUG",
    "FUNCTION",
    "MEMORY",
    "MODULE",
    "PUBSUB",
    "SCRIPT",
    "SLOWLOG",
    "XGROUP",
    "XINFO",
]

CLIENT = b"""\
CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
CACHING (YES|NO)
    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.
CAPA <option> [options...]
    The client claims its some capability options. Options are:
    * REDIRECT
      The client can handle redirection during primary and replica failover in standalone mode.
GETREDIR
    Return the client ID we are redirecting to when tracking is enabled.
GETNAME
    Return the name of the current connection.
ID
    Return the ID of the current connection.
INFO
    Return information about the current client connection.
KILL <ip:port>
    Kill connection made from <ip:port>.
KILL <option> <value> [<option> <value> [...]]
    Kill connections. Options are:
    * ADDR (<ip:port>|<unixsocket>:0)
      Kill connections made from the specified address.
    * LADDR (<ip:port>|<unixsocket>:0)
      Kill connections made to the specified local address.
    * TYPE (NORMAL|PRIMARY|REPLICA|PUBSUB)
      Kill connections by type.
    * USER <username>
      Kill connections authenticated by <username>.
    * SKIPME (YES|NO)
      Skip killing current connection (default: yes).
    * ID <client-id> [<client-id>...]
      Kill connections by client IDs.
    * MAXAGE <maxage>
      Kill connections older than the specified age.
    * FLAGS <flags>
      Kill connections that include the specified flags.
    * NAME <client-name>
      Kill connections with the specified name.
    * IDLE <idle>
      Kill connections with idle time greater than or equal to <idle> seconds.
    * LIB-NAME <library-name>
      Kill connections with the specified library name.
    * LIB-VER <library-version>
      Kill connections with the specified library version.
    * DB <db-id>
      Kill connections currently operating on the specified database ID.
    * CAPA <capa>
      Kill connections currently with the specified capa.
    * IP <ip>
      Kill connections made from the specified ip.
LIST [options ...]
    Return information about client connections. Options:
    * TYPE (NORMAL|PRIMARY|REPLICA|PUBSUB)
      Return clients of specified type.
    * USER <username>
      Return clients authenticated by <username>.
    * ADDR <ip:port>
      Return clients connected from the specified address.
    * LADDR <ip:port>
      Return clients connected to the specified local address.
    * ID <client-id> [<client-id>...]
      Return clients with the specified IDs.
    * SKIPME (YES|NO)
      Exclude the current client from the list (default: no).
    * MAXAGE <maxage>
      List connections older than the specified age.
    * FLAGS <flags>
      Return clients with the specified flags.
    * NAME <client-name>
      Return clients with the specified name.
    * IDLE <idle>
      Return clients with idle time greater than or equal to <idle> seconds.
    * LIB-NAME <lib-name>
      Return clients with the specified lib name.
    * LIB-VER <lib-version>
      Return clients with the specified lib version.
    * DB <db-id>
      Return clients currently operating on the specified database ID.
    * CAPA <capa>
      Return connections currently with the specified capa.
    * IP <ip>
      Return connections made from the specified ip.
UNPAUSE
    Stop the current client pause, resuming traffic.
PAUSE <timeout> [WRITE|ALL]
    Suspend all, or just write, clients for <timeout> milliseconds.
REPLY (ON|OFF|SKIP)
    Control the replies sent to the current connection.
SETNAME <name>
    Assign the name <name> to the current connection.
SETINFO <option> <value>
    Set client meta attr. Options are:
    * LIB-NAME: the client lib name.
    * LIB-VER: the client lib version.
UNBLOCK <clientid> [TIMEOUT|ERROR]
    Unblock the specified blocked client.
TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]
         [OPTIN] [OPTOUT] [NOLOOP]
    Control server assisted client side caching.
TRACKINGINFO
    Report tracking status for the current connection.
NO-EVICT (ON|OFF)
    Protect current client connection from eviction.
NO-TOUCH (ON|OFF)
    Will not touch LRU/LFU stats when this mode is on.
IMPORT-SOURCE (ON|OFF)
    Mark this connection as an import source if import-mode is enabled.
    Sync tools can set their connections into 'import-source' state to visit
    expired keys.
HELP
    Print this help.
""".splitlines()

COMMAND = b"""\
COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
(no subcommand)
    Return details about all commands.
COUNT
    Return the total number of commands in this server.
LIST
    Return a list of all commands in this server.
INFO [<command-name> ...]
    Return details about multiple commands.
    If no command names are given, documentation details for all
    commands are returned.
DOCS [<command-name> ...]
    Return documentation details about multiple commands.
    If no command names are given, documentation details for all
    commands are returned.
GETKEYS <full-command>
    Return the keys from a full command.
GETKEYSANDFLAGS <full-command>
    Return the keys and the access flags from a full command.
HELP
    Print this help.
""".splitlines()

CONFIG = b"""\
CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
GET <pattern>
    Return parameters matching the glob-like <pattern> and their values.
SET <directive> <value>
    Set the configuration <directive> to <value>.
RESETSTAT
    Reset statistics reported by the INFO command.
REWRITE
    Rewrite the configuration file.
HELP
    Print this help.
""".splitlines()

DEBUG = b"""\
DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
AOF-FLUSH-SLEEP <microsec>
    Server will sleep before flushing the AOF, this is used for testing.
ASSERT
    Crash by assertion failed.
CHANGE-REPL-ID
    Change the replication IDs of the instance.
    Dangerous: should be used only for testing the replication subsystem.
CONFIG-REWRITE-FORCE-ALL
    Like CONFIG REWRITE but writes all configuration options, including
    keywords not listed in original configuration file or default values.
CRASH-AND-RECOVER [<milliseconds>]
    Hard crash and restart after a <milliseconds> delay (default 0).
DIGEST
    Output a hex signature representing the current DB content.
DIGEST-VALUE <key> [<key> ...]
    Output a hex signature of the values of all the specified keys.
ERROR <string>
    Return a RESP protocol error with <string> as message. Useful for clients
    unit tests to simulate error replies.
LEAK <string>
    Create a memory leak of the input string.
LOG <message>
    Write <message> to the server log.
HTSTATS <dbid> [full]
    Return hash table statistics of the specified database.
HTSTATS-KEY <key> [full]
    Like HTSTATS but for the hash table stored at <key>'s value.
LOADAOF
    Flush the AOF buffers on disk and reload the AOF in memory.
REPLICATE <string>
    Replicates the provided string to replicas, allowing data divergence.
OBJECT <key> [fast]
    Show low level info about `key` and associated value.
    Some fields of the default behavior may be time consuming to fetch,
    and `fast` can be passed to avoid fetching them.
DROP-CLUSTER-PACKET-FILTER <packet-type>
    Drop all packets that match the filtered type. Set to -1 allow all packets or -2 to drop all packets.
CLOSE-CLUSTER-LINK-ON-PACKET-DROP <0|1>
    This is valid only when DROP-CLUSTER-PACKET-FILTER is set to a valid packet type.
    When set to 1, the cluster link is closed after dropping a packet based on the filter.
DISABLE-CLUSTER-RANDOM-PING <0|1>
    Disable sending cluster ping to a random node every second.
DISABLE-CLUSTER-RECONNECTION <0|1>
    Disable cluster reconnection of cluster nodes.
OOM
    Crash the server simulating an out-of-memory error.
PANIC
    Crash the server simulating a panic.
POPULATE <count> [<prefix>] [<size>]
    Create <count> string keys named key:<num>. If <prefix> is specified then
    it is used instead of the 'key' prefix. These are not propagated to
    replicas. Cluster slots are not respected so keys not belonging to the
    current node can be created in cluster mode.
PROTOCOL <type>
    Reply with a test value of the specified type. <type> can be: string,
    integer, double, bignum, null, array, set, map, attrib, push, verbatim,
    true, false.
RELOAD [option ...]
    Save the RDB on disk and reload it back to memory. Valid <option> values:
    * MERGE: conflicting keys will be loaded from RDB.
    * NOFLUSH: the existing database will not be removed before load, but
      conflicting keys will generate an exception and kill the server.
    * NOSAVE: the database will be loaded from an existing RDB file.
    Examples:
    * DEBUG RELOAD: verify that the server is able to persist, flush and reload
      the database.
    * DEBUG RELOAD NOSAVE: replace the current database with the contents of an
      existing RDB file.
    * DEBUG RELOAD NOSAVE NOFLUSH MERGE: add the contents of an existing RDB
      file to the database.
RESTART [<milliseconds>]
    Graceful restart: save config, db, restart after a <milliseconds> delay (default 0).
SDSLEN <key>
    Show low level SDS string info representing `key` and value.
SEGFAULT
    Crash the server with sigsegv.
SET-ACTIVE-EXPIRE <0|1>
    Setting it to 0 disables expiring keys in background when they are not
    accessed (otherwise the behavior). Setting it to 1 reenables back the
    default.
QUICKLIST-PACKED-THRESHOLD <size>
    Sets the threshold for elements to be inserted as plain vs packed nodes
    Default value is 1GB, allows values up to 4GB. Setting to 0 restores to default.
SET-SKIP-CHECKSUM-VALIDATION <0|1>
    Enables or disables checksum checks for RDB files and RESTORE's payload.
SLEEP <seconds>
    Stop the server for <seconds>. Decimals allowed.
STRINGMATCH-TEST
    Run a fuzz tester against the stringmatchlen() function.
STRUCTSIZE
    Return the size of different core C structures.
LISTPACK <key>
    Show low level info about the listpack encoding of <key>.
QUICKLIST <key> [<0|1>]
    Show low level info about the quicklist encoding of <key>.
    The optional argument (0 by default) sets the level of detail
CLIENT-EVICTION
    Show low level client eviction pools info (maxmemory-clients).
PAUSE-CRON <0|1>
    Stop periodic cron job processing.
REPLYBUFFER PEAK-RESET-TIME <NEVER||RESET|time>
    Sets the time (in milliseconds) to wait between client reply buffer peak resets.
    In case NEVER is provided the last observed peak will never be reset
    In case RESET is provided the peak reset time will be restored to the default value
REPLYBUFFER RESIZING <0|1>
    Enable or disable the reply buffer resize cron job
PAUSE-AFTER-FORK <0|1>
    Stop the server's main process after fork.
DELAY-RDB-CLIENT-FREE-SECOND <seconds>
    Grace period in seconds for replica main channel to establish psync.
DICT-RESIZING <0|1>
    Enable or disable the main dict and expire dict resizing.
HASHTABLE-CAN-ABORT-SHRINK <0|1>
    Enable or disable the hashtable shrink abort.
CLIENT-ENFORCE-REPLY-LIST <0|1>
    When set to 1, it enforces the use of the client reply list directly
    and avoids using the client's static buffer.
SLOTMIGRATION PREVENT-PAUSE <0|1>
    When set to 1, slot migrations will be prevented from pausing on the source node.
SLOTMIGRATION PREVENT-FAILOVER <0|1>
    When set to 1, slot migrations will be prevented from performing the slot-level failover on the target node.
FORCE-FREE-PRIMARY-ASYNC <0|1>
    Force freeClient on primary to use async path.
PROTECT-CLIENT <id>
    Protect a client from being freed, forcing deferred close.
FORCE-TLS-WRITE-ERROR <0|1>
    Force TLS write error for testing.
CLUSTERLINK KILL <to|from|all> <node-id>
    Kills the link based on the direction to/from (both) with the provided node.
HELP
    Print this help.
""".splitlines()

FUNCTION = b"""\
FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
LOAD [REPLACE] <FUNCTION CODE>
    Create a new library with the given library name and code.
DELETE <LIBRARY NAME>
    Delete the given library.
LIST [LIBRARYNAME PATTERN] [WITHCODE]
    Return general information on all the libraries:
    * Library name
    * The engine used to run the Library
    * Functions list
    * Library code (if WITHCODE is given)
    It also possible to get only function that matches a pattern using LIBRARYNAME argument.
STATS
    Return information about the current function running:
    * Function name
    * Command used to run the function
    * Duration in MS that the function is running
    If no function is running, return nil
    In addition, returns a list of available engines.
KILL
    Kill the current running function.
FLUSH [ASYNC|SYNC]
    Delete all the libraries.
    When called without the optional mode argument, the behavior is determined by the
    lazyfree-lazy-user-flush configuration directive. Valid modes are:
    * ASYNC: Asynchronously flush the libraries.
    * SYNC: Synchronously flush the libraries.
DUMP
    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command
RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]
    Restore the libraries represented by the given payload, it is possible to give a restore policy to
    control how to handle existing libraries (default APPEND):
    * FLUSH: delete all existing libraries.
    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.
    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old
      libraries with the new libraries (notice that even on this option there is a chance of failure
      in case of functions name collision with another library).
HELP
    Print this help.
""".splitlines()

PUBSUB = b"""\
PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
CHANNELS [<pattern>]
    Return the currently active channels matching a <pattern> (default: '*').
NUMPAT
    Return number of subscriptions to patterns.
NUMSUB [<channel> ...]
    Return the number of subscribers for the specified channels, excluding
    pattern subscriptions(default: no channels).
SHARDCHANNELS [<pattern>]
    Return the currently active shard level channels matching a <pattern> (default: '*').
SHARDNUMSUB [<shardchannel> ...]
    Return the number of subscribers for the specified shard level channel(s)
HELP
    Print this help.
""".splitlines()

SCRIPT = b"""\
SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
DEBUG (YES|SYNC|NO) [<engine_name>]
    Set the debug mode for subsequent scripts executed of the specified engine.
    Default engine name: 'lua'
EXISTS <sha1> [<sha1> ...]
    Return information about the existence of the scripts in the script cache.
FLUSH [ASYNC|SYNC]
    Flush the Lua scripts cache. Very dangerous on replicas.
    When called without the optional mode argument, the behavior is determined
     by the lazyfree-lazy-user-flush configuration directive. Valid modes are:
    * ASYNC: Asynchronously flush the scripts cache.
    * SYNC: Synchronously flush the scripts cache.
KILL
    Kill the currently executing Lua script.
LOAD <script>
    Load a script into the scripts cache without executing it.
SHOW <sha1>
    Show a script from the scripts cache.
HELP
    Print this help.
""".splitlines()

XGROUP = b"""\
XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
CREATE <key> <groupname> <id|$> [option]
    Create a new consumer group. Options are:
    * MKSTREAM
      Create the empty stream if it does not exist.
    * ENTRIESREAD entries_read
      Set the group's entries_read counter (internal use).
CREATECONSUMER <key> <groupname> <consumer>
    Create a new consumer in the specified group.
DELCONSUMER <key> <groupname> <consumer>
    Remove the specified consumer.
DESTROY <key> <groupname>
    Remove the specified group.
SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]
    Set the current group ID and entries_read counter.
HELP
    Print this help.
""".splitlines()

MEMORY = b"""\
MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
DOCTOR
    Return memory problems reports.
MALLOC-STATS
    Return internal statistics report from the memory allocator.
PURGE
    Attempt to purge dirty pages for reclamation by the allocator.
STATS
    Return information about the memory usage of the server.
USAGE <key> [SAMPLES <count>]
    Return memory in bytes used by <key> and its value. Nested values are
    sampled up to <count> times (default: 5, 0 means sample all).
HELP
    Print this help.
""".splitlines()

MODULE = b"""\
MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
LIST
    Return a list of loaded modules.
LOAD <path> [<arg> ...]
    Load a module library from <path>, passing to it any optional arguments.
LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]
    Load a module library from <path>, while passing it module configurations and optional arguments.
UNLOAD <name>
    Unload a module.
HELP
    Print this help.
""".splitlines()

SLOWLOG = b"""\
SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
GET [<count>]
    Return top <count> entries from the slowlog (default: 10, -1 mean all).
    Entries are made of:
    id, timestamp, time in microseconds, arguments array, client IP and port,
    client name
LEN
    Return the length of the slowlog.
RESET
    Reset the slowlog.
HELP
    Print this help.
""".splitlines()

COMMANDLOG = b"""\
COMMANDLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
GET <count> <type>
    Return top <count> entries of the specified <type> from the commandlog (-1 mean all).
    Entries are made of:
    id, timestamp,
        time in microseconds for type of slow,
        or size in bytes for type of large-request,
        or size in bytes for type of large-reply
    arguments array, client IP and port,
    client name
LEN <type>
    Return the length of the specified type of commandlog.
RESET <type>
    Reset the specified type of commandlog.
HELP
    Print this help.
""".splitlines()

XINFO = b"""\
XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
CONSUMERS <key> <groupname>
    Show consumers of <groupname>.
GROUPS <key>
    Show the stream consumer groups.
STREAM <key> [FULL [COUNT <count>]
    Show information about the stream.
HELP
    Print this help.
""".splitlines()

CLUSTER = b"""\
CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
COUNTKEYSINSLOT <slot>
    Return the number of keys in <slot>.
GETKEYSINSLOT <slot> <count>
    Return key names stored by current node in a slot.
INFO
    Return information about the cluster.
KEYSLOT <key>
    Return the hash slot for <key>.
MYID
    Return the node id.
MYSHARDID
    Return the node's shard id.
NODES
    Return cluster configuration seen by node. Output format:
    <id> <ip:port@bus-port[,hostname]> <flags> <primary> <pings> <pongs> <epoch> <link> <slot> ...
REPLICAS <node-id>
    Return <node-id> replicas.
SLOTS
    Return information about slots range mappings. Each range is made of:
    start, end, primary and replicas IP addresses, ports and ids
SLOT-STATS
    Return an array of slot usage statistics for slots assigned to the current node.
SHARDS
    Return information about slot range mappings and the nodes associated with them.
ADDSLOTS <slot> [<slot> ...]
    Assign slots to current node.
ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]
    Assign slots which are between <start-slot> and <end-slot> to current node.
BUMPEPOCH
    Advance the cluster config epoch.
COUNT-FAILURE-REPORTS <node-id>
    Return number of failure reports for <node-id>.
DELSLOTS <slot> [<slot> ...]
    Delete slots information from current node.
DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]
    Delete slots information which are between <start-slot> and <end-slot> from current node.
FAILOVER [FORCE|TAKEOVER]
    Promote current replica node to being a master.
FORGET <node-id>
    Remove a node from the cluster.
FLUSHSLOTS
    Delete current node own slots information.
MEET <ip> <port> [<bus-port>]
    Connect nodes into a working cluster.
REPLICATE <node-id>
    Configure current node as replica to <node-id>.
RESET [HARD|SOFT]
    Reset current node (default: soft).
SET-CONFIG-EPOCH <epoch>
    Set config epoch of current node.
SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)
    Set slot state.
SAVECONFIG
    Force saving cluster configuration on disk.
LINKS
    Return information about all network links between this node and its peers.
    Output format is an array where each array element is a map containing attributes of a link
MIGRATESLOTS SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id \
[SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id ...]
    Migrate the specified slot ranges from this node to the specified node.
CANCELSLOTMIGRATIONS ALL
    Cancel all migrations.
GETSLOTMIGRATIONS
    Get information about ongoing and recently finished slot imports and exports.
HELP
    Print this help.
""".splitlines()
