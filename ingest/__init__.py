"""The trace: its tables, the recorder that writes it, the readers that turn other files into it."""
