"""The subcommands of `stepscope`: a file for each, named for it."""
