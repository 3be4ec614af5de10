"""Access to the JVM: Scala objects, Hadoop file systems, and callbacks into Python."""
