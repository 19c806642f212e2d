"""One driver per client library. A driver plays the steps of `tests.interop.steps` and says what it saw."""
