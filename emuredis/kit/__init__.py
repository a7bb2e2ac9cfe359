"""The test kit: what a test can do with an emulator that it cannot do with a server.

    contents    the whole content as readable text, and back
    sources     files of it: JSON, YAML, RDB, MONITOR
    assertions  what a test expects of a key, with the difference spelled out
    faults      commands that fail, wait or lose their connection
    journal     what was asked and answered, and budgets for it

`emuredis.Emulator` has all of it as methods; all but the assertions is imported when it is first used.
"""

from __future__ import annotations
