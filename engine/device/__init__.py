"""Core groups and the scheduler that dispatches task graphs on them.

graphs      tasks, dependencies by tensor overlap, barriers
lowering    what a batch becomes: a graph of tasks
topology    cores, groups, threads
admission   when a MIX may take a group       placement  which core takes the next block
dispatcher  the scheduler threads' pass       silicon    what the cores do with their blocks
events      virtual time                      rings      how far submission may run ahead
run_log, trace_rows, usage, decision_log      what is kept of a run
"""
