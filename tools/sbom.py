"""What hedged is made of, as a CycloneDX document: `make sbom` writes build/sbom.json.

It lists what is installed beside hedged and needed by it, extras included, with versions and licences.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement

ROOT = "hedged"
EXTRAS = ("parquet", "search", "postgres", "timm")  # that users install; tools of developers are no part of it


def canonical(name: str) -> str:
    """The name of a package as registries spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(package: Distribution, extras: Iterable[str] = ("",)) -> list[str]:
    """The names of the installed packages that one needs, each once."""
    found: dict[str, None] = {}
    for text in package.requires or ():
        requirement = Requirement(text)
        wanted = requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
        if wanted and installed(requirement.name):
            found[canonical(requirement.name)] = None
    return sorted(found)


def installed(name: str) -> Distribution | None:
    """A package, if it is installed."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def reached() -> dict[str, tuple[Distribution, list[str]]]:
    """hedged and all that it needs, directly or not, with what each needs."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    waiting = [ROOT]
    while waiting:
        name = waiting.pop()
        if name not in found and (package := installed(name)):
            needed = needs(package, ("", *EXTRAS) if name == ROOT else ("",))
            found[name] = package, [one for one in needed if one != ROOT]
            waiting += found[name][1]
    return found


def component(name: str, package: Distribution, kind: str = "library") -> dict[str, Any]:
    """A package as CycloneDX describes it."""
    version = package.version
    described: dict[str, Any] = {"type": kind, "bom-ref": reference(name, version), "name": name, "version": version}
    stated = [package.metadata[key] for key in ("License-Expression", "License") if key in package.metadata]
    if stated and (licence := stated[0].strip()):
        described["licenses"] = [{"license": {"name": licence.splitlines()[0][:200]}}]
    return {**described, "purl": reference(name, version)}


def reference(name: str, version: str) -> str:
    """The address of a package that names no registry in particular."""
    return f"pkg:pypi/{name}@{version}"


def sbom() -> dict[str, Any]:
    """The document; the same for the same packages."""
    packages = reached()
    components = [component(name, package) for name, (package, _) in sorted(packages.items()) if name != ROOT]
    graph = [
        {
            "ref": reference(name, package.version),
            "dependsOn": [reference(one, packages[one][0].version) for one in needed if one in packages],
        }
        for name, (package, needed) in sorted(packages.items())
    ]
    root = component(ROOT, packages[ROOT][0])
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([root, components, graph]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": graph,
    }


if __name__ == "__main__":
    json.dump(sbom(), sys.stdout, indent=2)
    print()
