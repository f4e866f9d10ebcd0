"""The scheduler of SGLang: built without its model, called as its engine calls it."""
