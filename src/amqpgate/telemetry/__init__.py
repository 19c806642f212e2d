"""What operators see of the gateway in numbers: Prometheus metrics.

In come counts and the live objects that are summed when somebody asks; out goes the text that
``/metrics`` serves. Neighbours: ``app`` wires it, ``gateway`` counts, ``admin`` serves it.
"""
