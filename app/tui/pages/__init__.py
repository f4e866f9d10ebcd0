"""The pages of the terminal front, and what each of them is made of."""
