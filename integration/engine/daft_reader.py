"""Daft in an environment of its own, as it needs an older pyarrow; see `foreign_engine`."""

import daft
from foreign_engine import answer_questions


def answer(folder, condition, columns, plain):
    """The rows of a Delta table, or of a plain Parquet file, that meet a condition."""
    rows = daft.read_parquet(folder) if plain else daft.read_deltalake(folder)
    return daft.sql(f"select {columns} from t where {condition}", t=rows).to_arrow()


answer_questions(answer)
