"""Metrics and log lines by OTLP over HTTP, beside Prometheus and standard error.

``post``     one request, in the thread that calls
``metrics``  families of prometheus-client as OTLP's; pure
``logs``     a bounded queue of log lines, and the thread that sends them
``counts``   what became of them

Loaded where the settings have `otlp` alone, but for ``counts``.
"""
