"""SGLang's schedulers: what is hooked, what is told of each step, and why requests wait."""
