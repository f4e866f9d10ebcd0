"""A profile and the recording of the same run, as one trace on one clock."""
