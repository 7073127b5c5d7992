"""The least versions that pyproject.toml allows, as constraints for pip.

python tools/minimal_versions.py > minimal.txt
pip install -c minimal.txt -e '.[dev]'
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# of users, but for onnx, which needs a newer torch
EXTRAS = ("parquet", "search", "postgres", "lance", "ray", "usearch", "timm", "runtime", "serve")
LEAST = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?>=(?P<version>[0-9.]+)")


def minimal_versions() -> list[str]:
    """`name==version` of each dependency that states a least version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    found = [match for one in stated if (match := LEAST.fullmatch(one))]
    return list(dict.fromkeys(f"{one['name']}=={one['version']}" for one in found))


if __name__ == "__main__":
    print("\n".join(minimal_versions()))
