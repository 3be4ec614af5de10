"""Row placement: keys become ranks, a k-d tree over ranks forms files and row groups, a curve orders rows inside."""
