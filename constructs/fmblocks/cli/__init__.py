"""The command line: thin, it calls the library."""
