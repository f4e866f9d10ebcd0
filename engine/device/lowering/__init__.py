"""From a step's batch to a task graph: a file for each layer, one for what hurts a dispatcher."""
