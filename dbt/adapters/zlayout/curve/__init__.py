"""Where rows go: keys become ranks, a tree over ranks cuts files and row groups, a curve orders the rows inside."""
