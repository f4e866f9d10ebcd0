"""Figures that say in short how a run went: latencies and their SLOs, GPUs, core groups, load."""
