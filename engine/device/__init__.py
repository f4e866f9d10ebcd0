"""Core groups and the scheduler that dispatches task graphs on them.

topology    cores, groups, threads            tasks      graphs, dependencies by tensor overlap
admission   when a MIX may take a group       placement  which core takes the next block
dispatcher  the scheduler threads' pass       silicon    what the cores do with their blocks
events      virtual time                      rings      how far submission may run ahead
workloads   what a batch is lowered to        recording, usage, decision_log   what is kept of it
"""
