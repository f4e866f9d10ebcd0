"""Core groups: which block holds which core.

A core group of an Ascend NPU is one cube core (AIC), which multiplies matrices, and two vector
cores (AIV). A MIX block runs on both kinds of one group at the same time.
"""
