"""Mirrors: copies of what is published, for another cluster.

``registry``   the mirrors of a process, and which one a session feeds
``session``    the observer of one session: which publishes are copied, and how
``mirror``     one mirror: a ``queue``, and a task that dials (``dial``) and writes (``line``, ``pipe``)
"""
