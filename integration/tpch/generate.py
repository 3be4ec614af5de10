"""TPC-H as plain Parquet, a folder a table: python generate.py --scale-factor 1 --home data."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLES = ("lineitem", "orders")
_FILES_PER_TABLE = 4


def generate(home, scale_factor):
    """Writes the tables to ``<home>/parquet``, unless they are there at this scale factor.

    Returns:
        Whether there was anything to do.
    """
    folder = Path(home) / "parquet"
    stamp = folder / "generated.json"
    wanted = json.dumps({"scale_factor": scale_factor, "tables": TABLES, "files_per_table": _FILES_PER_TABLE})
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    program = Path(sys.executable).with_name("tpchgen-cli")
    tables = [f"--tables={table}" for table in TABLES]
    sizes = [f"--scale-factor={scale_factor}", f"--parts={_FILES_PER_TABLE}"]
    subprocess.run([program, "parquet", *sizes, *tables, f"--output-dir={folder}", "--quiet"], check=True)
    stamp.write_text(wanted)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--home", type=Path, default=HERE / "data")
    arguments = parser.parse_args()
    made = generate(arguments.home, arguments.scale_factor)
    print(f"{arguments.home / 'parquet'}: {'generated' if made else 'already there'}")


if __name__ == "__main__":
    main()
