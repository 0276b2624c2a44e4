"""What every room shares: errors, files, threads, seeds, compilation."""
