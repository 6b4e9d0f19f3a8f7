"""What every room uses and that uses none of them: checks of arguments, files, SQLite, progress, wording, types."""
