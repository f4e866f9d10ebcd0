"""The adapter of SGLang, beside objects that are like its scheduler's."""
