"""Deterministic simulation: the gateway on virtual time and a simulated network; `docs/simulation.md`."""
