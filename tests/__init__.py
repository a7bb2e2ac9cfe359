"""The tests of emuredis and echomq; a package, so that its harnesses can be run with ``python -m``."""
