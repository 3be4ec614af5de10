"""The profile, the connections and the one Spark session that they share."""
