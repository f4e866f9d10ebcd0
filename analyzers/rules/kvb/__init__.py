"""KV blocks and slots: who owns which, and when."""
