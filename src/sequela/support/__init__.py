"""Code that all packages share: errors, files, threads, seeds, compilation."""
