"""What the queries of a block read, from the metrics that Spark keeps of its scans; and the calls to the JVM."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scan:
    """A scan of files.

    Attributes:
        files: Files read.
        partitions: Partitions read, or None for a table that has none.
        rows: Rows of the row groups read.
    """

    files: int
    partitions: int | None
    rows: int


class Scans:
    """Within ``with Scans(spark) as scans:`` the scans that ran, and the jobs; known when the block ends."""

    def __init__(self, spark):
        self._bus = spark.sparkContext._jsc.sc().listenerBus()
        self._store = spark._jsparkSession.sharedState().statusStore()
        self.scans = []
        self.jobs = 0

    def __enter__(self):
        self._before = self._executions().keys()
        return self

    def __exit__(self, *_):
        for number, execution in sorted(self._executions().items()):
            if number not in self._before:
                self.jobs += execution.jobs().size()
                self.scans += self._of(number)

    @property
    def files(self):
        """Files read by each scan."""
        return [each.files for each in self.scans]

    @property
    def partitions(self):
        """Partitions read by each scan of a partitioned table."""
        return [each.partitions for each in self.scans if each.partitions is not None]

    def _executions(self):
        self._bus.waitUntilEmpty()
        listed = self._store.executionsList()
        return {each.executionId(): each for each in map(listed.apply, range(listed.size()))}

    def _of(self, number):
        values, nodes = self._store.executionMetrics(number), self._store.planGraph(number).allNodes()
        for node in map(nodes.apply, range(nodes.size())):
            if node.name().startswith("Scan parquet"):
                metrics = map(node.metrics().apply, range(node.metrics().size()))
                texts = {each.name(): values.get(each.accumulatorId()) for each in metrics}
                # Thousands are set apart by commas.
                found = {
                    name: int(text.get().replace(",", ""))
                    for name, text in texts.items()
                    if name.startswith("number of ") and text.isDefined()
                }
                files, partitions = found.get("number of files read", 0), found.get("number of partitions read")
                yield Scan(files, partitions, found.get("number of output rows", 0))


class Calls:
    """Counts what goes over the gateway to the JVM."""

    def __init__(self, spark, monkeypatch):
        self.count = self.characters = 0
        client = spark.sparkContext._gateway._gateway_client
        original = client.send_command

        def counted(command, *args, **kwargs):
            # Calls of methods and constructors; what the garbage collector lets go comes whenever it likes.
            self.count += command.startswith(("c\n", "i\n"))
            answer = original(command, *args, **kwargs)
            self.characters += len(answer)
            return answer

        monkeypatch.setattr(client, "send_command", counted)
