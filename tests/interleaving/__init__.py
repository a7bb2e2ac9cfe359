"""The queue's scripts and loops under every schedule: `proofs` explores; ``docs/proofs.md`` tells the counts."""
