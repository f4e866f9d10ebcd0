"""What fails a build: conditions on how one run, or several, compare with those before a change."""
