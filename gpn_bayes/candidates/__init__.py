"""Which parent sets are looked at: candidate lists, the methods that find them, and how they grow."""
