"""Who waits in front of vLLM's scheduler, what it looks at, and why somebody is left out."""
