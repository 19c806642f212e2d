"""Spans of what trace policies choose, from what begins one to what ends it.

``tracer``     the process: samplers, and spans of the set-up of connections
``session``    the observer of one session; ``under_way`` has the spans that have not ended
``factory``    makes observers; what the others load is not loaded where nothing is traced
"""
