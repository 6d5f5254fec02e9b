"""What the commands do. What is typed, their options and their help, is in `host.cli` under the same names."""
