"""The forms in which rows lie in a journal: one by one, in columns, or as batches that go on."""
