"""Shared by all packages: checks of arguments, files, SQLite, progress, wording."""
