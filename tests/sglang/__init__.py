"""The real scheduler of SGLang, recorded on a CPU; needs an environment that has it."""
