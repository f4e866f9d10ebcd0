"""Buffers: who reads and writes them, and in which order."""
