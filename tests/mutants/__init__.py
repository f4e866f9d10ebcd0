"""Random mutants of the product: which of them do the tests let live?"""
