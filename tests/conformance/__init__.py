"""Conformance: lines without expected values, run on emuredis and on the live server, replies compared.

The lines are text files in ``lines/``, read by `tests.conformance.lines`, which also describes the format. A
transcript (`tests.conformance.run`) is what one endpoint answered; `tests.conformance.compare` holds two
of them against each other; `tests.conformance.recorded` keeps the live server's for machines without it.

``python -m tests.conformance [FILE ...]`` runs files from the command line and prints what differs.
"""
