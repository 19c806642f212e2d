"""Connections to brokers that several sessions share.

A *pool* has all shared connections of one upstream, virtual host and login. A session acquires a channel of
one of them for each channel that its client opens (a *channel mapping*), and releases it at its close. A
session that asks for what a shared connection cannot carry *migrates* to a connection of its own. What comes
in is a login and the session's questions (``session.upstream``); what goes out are frames for brokers.

========================================================  ==============================================
``registry``, ``pool``, ``dial``                          all pools; one pool; opening its connections
``credential_cache``                                      which logins the broker has accepted lately
``plan``, ``connection_state``, ``channel_numbers``       the decisions of one pool, without I/O
``shared_connection``, ``connection_channels``            one shared connection, and its channels
``channel_close``, ``exclusive_queues``                   what may still be said there, and whose queues are
``pooled_upstream``, ``pooled_session``                   one session, as it asks, and as its pool knows it
``channel_mapping``, ``requests``, ``answers``            one channel of it, and what is under way there
``unsupported``, ``queue_types``                          what a shared connection carries
``migrate``, ``connection_close``, ``waiting``            how a session leaves, closes, and waits
``usage``                                                 numbers for metrics
========================================================  ==============================================
"""
