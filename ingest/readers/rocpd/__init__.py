"""Reader of rocpd, the SQLite database that rocprofv3 writes where nothing else is asked for."""
