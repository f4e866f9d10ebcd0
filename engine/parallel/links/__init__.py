"""How ranks speak to each other: what carries collectives, and what they say with them."""
