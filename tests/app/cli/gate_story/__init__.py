"""An engine in a repository of its own, and the gate of docs/ci.md on its commits."""
