"""Requests: what clients send, what prompts say, who is still to come and what ends them."""
