"""Code that all packages share: errors, files, threads, random numbers, compilation."""
