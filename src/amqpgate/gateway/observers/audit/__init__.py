"""Audit records: what passes is counted by row, and what is decided or changed is an event.

``audit``    the gateway's trail: windows, room in the log, and what is no session's
``session``  the observer of one session; ``writer`` is what it writes with
``rows``     what usage is summed by; ``columns`` what a record says of an operation
``channel``  what one channel waits for; ``limits`` what limits did in a window
``logins``   those that were refused
"""
