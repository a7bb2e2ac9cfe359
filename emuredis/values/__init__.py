"""Data structures behind the keys. A value knows no key, no clock, no command and no client."""
