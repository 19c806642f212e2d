"""What is seen of the gateway: Prometheus metrics, and audit records.

In come counts and the live objects that are summed when somebody asks; out goes the text that
``/metrics`` serves. `audit` writes records of what passed and what happened. Neighbours: ``app`` wires it,
``gateway`` counts, ``admin`` serves it.
"""
