"""Files of the timeline: their names and formats, instants, and lists of data files."""
