"""The gateway as a whole: its parts put together, started, reloaded and drained.

In come settings and policies; out goes a `Gateway` whose ``run`` serves until a drain.

``assembly``        makes the parts, in the order in which they need each other
``gateway``         the nursery tree
``lifecycle``       pauses and drains; ``readiness`` says whether new connections are accepted
``policy_control``  puts other policies in force, which ``reloading`` reads and ``policy_fit`` checks
``scraping``        reads the numbers, of which ``scrape`` makes metrics
``housekeeping``    what time alone brings about; ``memory_keeping`` is the part of it that frees memory
``full_collections``  of Python's, which are seldom
"""
