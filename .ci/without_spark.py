"""The lock without pyspark and py4j, hashes and all, for environments that get another Spark."""

import re
import sys
from pathlib import Path

_REPLACED = re.compile(r"(pyspark|py4j)==")


def main(lock: str) -> None:
    """Prints the requirements; each starts in the first column and goes on in indented lines."""
    keep = True
    for line in Path(lock).read_text("utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            keep = _REPLACED.match(line) is None
        if keep:
            sys.stdout.write(f"{line}\n")


main(*sys.argv[1:])
