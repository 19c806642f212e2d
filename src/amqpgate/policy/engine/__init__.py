"""Requests, patterns, rules and decisions.

In comes an `Operation` of a `Principal`; out comes a `Verdict` that names the rule which decided.

- `operations`, `from_method`: who asks, for what, and which attributes each operation has.
- `subjects`: whom a policy is about.
- `matching`, `words`, `exempting`: patterns for names and keys, in time linear in the text; their exceptions.
- `separators`: whether a variable in a pattern tells one session from another.
- `conditions`, `scalars`: what a rule asks of arguments and of content headers, and of one value in them.
- `access_rule`, `rules`, `verdicts`: rules as documents write them, compiled and indexed by operation;
  `SessionPolicy` to `Verdict`, and to the sentence that a denied client reads.
- `first_match`: rules of which the first that matches decides.
- `naming`: names changed there and back.
- `weights`: choosing by weight.
- `taps`: which operations a tap shows.
- `inclusion`, `overlaps`, `witnesses`, `requests`: questions about rules, examples of what they match, and
  requests as people write them.
"""
