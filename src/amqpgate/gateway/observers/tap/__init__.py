"""Taps: operators watch the operations that an expression is about.

``taps``       the taps of a process, and their share of a second
``session``    the observer of one session that is tapped; ``published`` and ``sent`` are its messages
``scope``      what a tap is about, and how much of it may be told
``flows``      the flows that are watched; ``lines`` what is told
"""
