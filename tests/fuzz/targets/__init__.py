"""What is fuzzed. One module for each target, with what `tests.fuzz.store.Target` asks for."""
