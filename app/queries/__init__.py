"""Asking a trace's tables: completion, where rows of an answer lead, answers as files."""
