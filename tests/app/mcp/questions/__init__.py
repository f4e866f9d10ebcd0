"""Questions that somebody would ask an assistant, and what a good answer has to rest on."""
