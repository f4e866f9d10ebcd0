"""Collectives: what ranks do together."""
