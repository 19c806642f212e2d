"""Rate limits: how many tokens there are, and who shares them.

``token_buckets``  the buckets by limit, on which the data path draws itself
``shared_memory``  buckets of several workers
``distributed``    buckets that several processes share through Redis
``sampler``        chooses a share of messages

What a limit says to single operations is `session.operation_limits`.
"""
