"""How good a layout is: overlap of files, from their statistics alone."""
