"""Random configurations of the reference engine: what the rules say of runs that no test draws.

`python -m tests.random_configurations --scenario all --count 200 --seed 1` prints a table: of each
scenario how many configurations were clean, what was found in the others, and whether a count of
its own, in plain Python over the rows of the trace, confirms it. With `--faults` it tries each
fault in random configurations in which it shows instead.
"""
