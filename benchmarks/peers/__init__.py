"""Compare sequela with other programs (peers): `python -m benchmarks.peers`, or `make peers`."""
