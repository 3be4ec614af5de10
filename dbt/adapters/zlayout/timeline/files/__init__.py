"""What the timeline's files are called and how they are read: paths, instants, lists of data files."""
