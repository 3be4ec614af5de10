"""The engine: everything that talks to Spark. No other folder imports pyspark."""
