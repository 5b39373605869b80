"""The record: runs, checkpoints, effects, waits, authority, wakes and the journal."""
