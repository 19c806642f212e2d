"""Spans of what trace policies choose, from what begins one to what ends it.

``tracer``     the process: samplers, and spans of the set-up of connections
``session``    the observer of one session; ``session_spans`` makes its spans, ``under_way`` has those that
               have not ended; ``injection`` puts a trace context into a message
``factory``    makes observers; what the others load is not loaded where nothing is traced
"""
