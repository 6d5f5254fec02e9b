"""What host and tool server agree on: models, tools, tokens, errors, digests. No I/O."""
