"""The adapter of vLLM: a plug-in that its processes load by themselves."""
