"""ClickHouse as a library, which reads only below the folder that its process was started in; see `foreign_engine`."""

import pyarrow as pa
from chdb.session import Session
from foreign_engine import answer_questions

SESSION = Session()
SESSION.query("set session_timezone = 'UTC'")


def _rows(query):
    content = SESSION.query(query, "ArrowStream").bytes()
    return pa.ipc.open_stream(content).read_all()


def _files_scanned():
    return sum(_rows("select value from system.events where event = 'DeltaLakeScannedFiles'")["value"].to_pylist())


def answer(query, files=False):
    """The rows of a query, or how many files of Delta tables it opens."""
    before = _files_scanned() if files else 0
    rows = _rows(query)
    return pa.table({"files": [_files_scanned() - before]}) if files else rows


answer_questions(answer)
