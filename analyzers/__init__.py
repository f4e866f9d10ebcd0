"""Rules: a trace goes in, findings come out; no screens, no engine."""
