"""Reader of SQLite databases that Nsight Systems exports."""
