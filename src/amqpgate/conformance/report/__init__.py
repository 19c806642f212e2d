"""What came of the cases, for people and for machines: each module writes one form of it."""
