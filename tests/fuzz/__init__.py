"""Fuzzing: one file for each target, one driver, a corpus that is kept, crashes that become regressions.

``__main__``   all targets side by side for a while: what `make fuzz` runs
``driver``     one target in one process, coverage-guided (atheris) or by plain mutation
``store``      where inputs are, and how few of them are kept
``mutation``   random changes of inputs, and making one smaller
``choices``    the fuzzer's bytes as decisions
``known``      faults that are known, and not mended yet
``targets``    what is fuzzed
``reference``  slow and obviously right twins that targets compare with
"""
