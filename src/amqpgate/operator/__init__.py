"""What operators may ask of a running gateway, and tell it to do.

In comes a call by name with JSON arguments, out goes JSON. ``queries`` is the table of calls and streams;
``sessions``, ``session_detail``, ``policies``, ``pools``, ``upstreams``, ``graph``, ``limits``,
``overview`` and ``explain`` answer. ``single`` asks one process, as `app.supervisor` asks several; ``admin``
gives both an HTTP face.
"""
