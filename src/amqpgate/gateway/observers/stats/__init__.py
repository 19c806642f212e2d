"""Statistics of sessions, for metrics, operators and the log.

``session``          the observer of one session
``reports``          tells the log, the metrics, and ``decisions``, which keeps the last and counts hits
``rule_messages``    messages, by the rules that decide about them
``bindings``         bindings that were made through this gateway
``confirm_latency``  how long brokers take to confirm
``totals``           what sessions have passed; ``rates`` makes rates of that, ``labelled`` sums by labels
``sampler``          a look a second at who waits for a limit
``selected``         whom policies select
"""
