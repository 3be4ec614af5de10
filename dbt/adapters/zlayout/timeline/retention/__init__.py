"""Older versions and the files that they need: time travel, cleaning, orphans."""
