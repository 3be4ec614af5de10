"""An engine that runs in a Python of its own: a process that is asked over pipes and answers with Arrow tables."""

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa


class ForeignEngine:
    """A process that runs one of the `*_reader.py` programs beside this file.

    Args:
        python: The interpreter of its environment.
        program: The name of the program.
        arguments: What it gets on its command line.
    """

    def __init__(self, python, program, *arguments):
        command = [str(python), str(Path(__file__).with_name(program)), *arguments]
        # The child must not find this process's interpreter or packages. ClickHouse reads only below its folder.
        environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": "", "DO_NOT_TRACK": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=environment
        )
        atexit.register(self.close)

    def ask(self, **question):
        """The answer as an Arrow table; an error of the engine is raised with its text."""
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        header = json.loads(self._process.stdout.readline() or '{"error": "the process of the engine has ended"}')
        if "error" in header:
            raise RuntimeError(header["error"])
        return pa.ipc.open_stream(self._process.stdout.read(header["bytes"])).read_all()

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def answer_questions(answer):
    """The child's side: answers each question until the parent closes the pipe.

    Args:
        answer: Takes a question's arguments, gives an Arrow table.
    """
    # Whatever the engine prints goes to the standard error, out of the way of the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            table = answer(**json.loads(line))
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            content = bytes(sink.getvalue())
            answers.write(json.dumps({"bytes": len(content)}).encode() + b"\n" + content)
        except Exception as error:
            answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        answers.flush()
