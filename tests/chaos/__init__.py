"""Chaos on real parts: faults by name and by seed, and a checker that judges the history of every message."""
