"""The profile, the connection and the one Spark session behind it."""
