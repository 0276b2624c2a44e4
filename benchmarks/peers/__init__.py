"""Compare sequela with other programs: `python -m benchmarks.peers`, or `make peers`."""
