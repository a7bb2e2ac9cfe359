"""Tests of the job queue: pure parts by table, everything else on the emulator and on a real server."""
