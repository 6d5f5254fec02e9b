"""The command line's commands, one file per group. Each imports what it needs when it runs, so that help is quick."""
