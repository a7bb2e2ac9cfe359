"""Clusters of emuredis, against a live cluster of three primaries and with the clients that people use."""
