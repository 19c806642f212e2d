"""The kinds of policies.

Each kind is a module that makes a `PolicyKind` (`kind`): the types of its document, whom it selects, what it
means for a session, what operators see of it, and what ``amqpgate policy check`` says of it. `registry` lists
the kinds. Documents come in from the loader; what they mean for one session goes out through the policy set.

- `access`, `rate`, `route`, `transform`, `audit`, `trace`: the kinds. What is long stands beside, in
  ``<kind>_document`` (types) and ``<kind>_findings``.
- `policy_test`: documents that are loaded with policies and never enforced.
- `route_table`, `mirror`, `transform_set`: the choice of a route, copies to another cluster, one session's
  changes.
- `kind`, `registry`: what a kind brings, and which kinds there are.
- `schema`: JSON Schemas.
- `common`, `finding`, `pattern_findings`: what several kinds share.
"""
