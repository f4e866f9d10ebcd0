"""The `stepscope` command: one small file per group of subcommands."""
