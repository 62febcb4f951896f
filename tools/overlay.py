"""Lays the environment of the Python that runs this over another one: `overlay/bin/python overlay.py base/bin/python`.

What the overlay holds itself comes first on the path; everything else is found in the base. So the same tests run on
another Spark with nothing but that Spark installed again.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path


def main(base_python: str) -> None:
    own = Path(sysconfig.get_path("purelib"))
    asked = subprocess.run(
        [base_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    base = Path(asked.stdout.strip())
    if base == own:
        sys.exit(f"{base_python} is the environment of this Python itself")
    # An editable install is a .pth file of the base, which is not read from here: name the source folder as well.
    source = Path(__file__).resolve().parent.parent / "src"
    (own / "base.pth").write_text(f"{base}\n{source}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
