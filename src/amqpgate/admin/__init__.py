"""The window to operators: health and metrics over HTTP, on loopback unless a token guards it.

In come HTTP requests; out go the answers about the gateway that is handed in. Neighbours: ``app``
runs it beside the gateway; it reads from ``gateway`` and ``telemetry``, and changes nothing but the policies,
when it is asked to read them again.
"""
