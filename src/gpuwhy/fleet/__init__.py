"""Many targets at once: collected by an engine that their users already run, kept in one folder, and compared."""
