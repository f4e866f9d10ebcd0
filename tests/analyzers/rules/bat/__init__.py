"""Batches: what a step computes, and for whom."""
