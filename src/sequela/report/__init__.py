"""What a run leaves behind: a folder with its model, tables, figures and how to repeat it."""
