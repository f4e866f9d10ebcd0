"""The prompt of `stepscope debug`: lines from a person, a script or a program, and answers."""
