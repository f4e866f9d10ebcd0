"""Task graphs: what a device is given to run, with what their tasks read, write and wait for."""
