"""Processes: builds a gateway from the settings and runs it, alone or as several workers.

``wiring``          builds and runs one process
``supervisor``      looks after several, which ``worker_process`` starts
``worker_rpc``      what they say to each other; ``worker_queries`` is the worker's side of it
``webhook``         serves the sidecar injector
``descriptors``     makes room for as many descriptors as connections may need
``standard_error``  where the log goes, without waiting for who reads it
"""
