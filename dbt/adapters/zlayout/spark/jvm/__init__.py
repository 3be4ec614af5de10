"""The seam to the JVM: Scala objects, Hadoop file systems, and calls back into Python."""
