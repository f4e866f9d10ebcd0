"""The core-group runtime's own log, with the debug lines that a hang is reported with."""
