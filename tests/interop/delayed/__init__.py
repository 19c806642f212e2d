"""Delayed messages under kills: who publishes, consumes and kills, and what is told of it."""
