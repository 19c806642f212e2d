"""Deterministic simulation: the gateway as it is on virtual time and a simulated network; `docs/simulation.md`."""
