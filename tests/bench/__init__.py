"""What the design promises of speed, measured on real parts: `python -m tests.bench.run` and `tests.bench.soak`.

How to read the figures

Nothing here is asserted by a test: a time says something only beside the machine and the minute that it was taken
in. Each run sets up a stack of its own (PostgreSQL with fsync and synchronous_commit on, on a disk; a tool server
process; orders of its own) and compares what it measured with what the same machine could do in the same minutes.

- A *ratio* divides by what `pgbench` reached, just before and after, with one-row commits and as many clients.
- *CPU ms* come from the kernel's clocks of the processes, and say nothing of waiting. A virtual machine's speed
  drifts by half within minutes, so a loop of fixed work (`yardstick`) is timed between the batches of each measure:
  the figure to compare is the raw one times 14 / yardstick, where 14 ms is that loop on a quiet machine. Raw and
  yardstick are printed beside it. What is compared with itself (with and without waiting workflows) is interleaved.
- *Wall ms* and *per second* are given as they were; with other work on the machine they are too slow, and the load
  average at the head of the table says so. Medians, never means.
- *Waiting for a processor* is what other work on the machine took: a process was ready, and another had its place. It
  is in every wall time and rate. pgbench with sixteen short tasks gets more of a busy machine than two long statements
  do, so on one the ratio to it is too low.
- *Counts* (commits, statements, checkpoints, WAL bytes) are exact and hold on any machine.
- *floor* columns of what PostgreSQL's own processes use are apart: they are no part of host and server.

A report is refused where a commit would not be durable, since every figure would then be too good.
"""
