"""Faults that are put into copies of the gateway, one at a time, to see that the simulator finds them."""
