"""The embedded default: everything that runs on one machine, from an empty directory to a ready stack."""
