"""Twins of what the gateway has: slow, short, and obviously right."""
