"""What users get: packages that install and hold what they should, nothing that unpickles, pages that escape."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import hedged

ROOT = Path(__file__).parents[1]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tools").glob("*.py")])
UNPICKLING = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
RUNNING = {"eval", "exec", "compile", "__import__"}
PACKAGED = {".py", ".pyi", ".typed", ".toml", ".json", ".safetensors", ".html", ".css", ".js"}


NAMES = {"PIL": "pillow", "sklearn": "scikit-learn", "faiss": "faiss-cpu"}  # of packages by their modules
PARTS = {"mpl_toolkits": "matplotlib", "pydantic_core": "pydantic", "llvmlite": "numba"}  # that come with others


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """The top of every module that a program imports, at its top or inside functions."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        yield from (name.split(".")[0] for name in names)


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in ("dev", "docs")}
    declared = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    packages = {re.split(r"[^\w-]", line)[0].lower().replace("-", "_") for line in declared} - {"hedged"}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for module in set(imported_modules(ast.parse(path.read_text(encoding="utf-8")))) - {"hedged"}:
            if module not in sys.stdlib_module_names:
                name = (NAMES | PARTS).get(module, module).lower().replace("-", "_")
                assert name in packages, f"{path.relative_to(ROOT)} imports {module}, which pyproject.toml lacks"


def unpickles(tree: ast.AST) -> Iterator[str]:
    """Every place in a program that unpickles, or runs text as a program."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"import {name}" for name in names if name.split(".")[0] in UNPICKLING)
        elif isinstance(node, ast.Call):
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            called = ast.unparse(node.func)
            is_torch = called in ("torch.load", "torch.save") and given.get("weights_only") != "True"
            if is_torch or given.get("allow_pickle", "False") != "False" or called in RUNNING:
                yield ast.unparse(node)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled(path: Path) -> None:
    assert not list(unpickles(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "program",
    ["import pickle", "from joblib import load", "torch.load(path)", "np.load(path, allow_pickle=True)", "eval(text)"],
)
def test_what_unpickles_is_found(program: str) -> None:
    assert list(unpickles(ast.parse(program)))


def test_no_template_shows_anything_as_it_is() -> None:
    """That names are escaped is tested on pages (tests/evaluation/test_report.py); here, that nothing goes round it."""
    templates = sorted((ROOT / "src").rglob("templates/*.html"))
    assert templates
    for path in [*templates, *SOURCES]:
        text = path.read_text(encoding="utf-8")
        for way in ("| safe", "|safe", "Markup(", "autoescape=False", "autoescape false"):
            assert way not in text, path
    pages = [path for path in SOURCES if "jinja2" in path.read_text(encoding="utf-8")]
    assert [path.name for path in pages] == ["page.py"]
    assert "autoescape=True" in pages[0].read_text(encoding="utf-8")


def test_the_bill_of_materials_lists_what_is_needed() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "sbom.py")], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    content = json.loads(made.stdout)
    assert (content["bomFormat"], content["specVersion"]) == ("CycloneDX", "1.5")
    listed = {component["name"]: component["version"] for component in content["components"]}
    assert {"torch", "numpy", "numba", "llvmlite", "safetensors", "pyarrow", "faiss-cpu", "psycopg"} <= listed.keys()
    assert not {"pytest", "mypy", "ruff", "hedged"} & listed.keys()
    assert all(listed.values())
    references = {component["purl"] for component in (*content["components"], content["metadata"]["component"])}
    for node in content["dependencies"]:
        assert {node["ref"], *node["dependsOn"]} <= references


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A source distribution of the checkout, and a wheel built of that."""
    folder = tmp_path_factory.mktemp("packages")
    checkout = folder / "checkout"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    build(checkout, "sdist", folder)
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    build(unpacked, "wheel", folder)
    (wheel,) = folder.glob("*.whl")
    return source, wheel


def build(project: Path, kind: str, out: Path) -> None:
    program = f"import setuptools.build_meta as b; b.build_{kind}({str(out)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=project, check=True, capture_output=True)


@pytest.mark.heavy
def test_packages_hold_what_they_should(packages: tuple[Path, Path]) -> None:
    source, wheel = packages
    files = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "hedged").rglob("*")}
    wanted = {name for name in files if Path(name).suffix in PACKAGED and "__pycache__" not in name} | {
        "hedged/py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("hedged/")}
        others = {Path(name).parts[0] for name in archive.namelist()} - {"hedged"}
    assert packed == wanted
    assert others == {f"hedged-{hedged.__version__}.dist-info"}
    with tarfile.open(source) as archive:
        names = {"/".join(Path(name).parts[1:]) for name in archive.getnames()}
    assert {f"src/{name}" for name in wanted} <= names
    assert {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "results", "tools", "runs", "."))]
    assert source.stat().st_size < 2**23
    assert wheel.stat().st_size < 2**23


@pytest.mark.heavy
def test_the_wheel_works_in_a_clean_environment(packages: tuple[Path, Path], tmp_path: Path) -> None:
    """All that it needs is there, but neither the checkout nor anything else of this environment's own."""
    _, wheel = packages
    home, dependencies = tmp_path / "home", sysconfig.get_path("purelib")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    (packages_of_home,) = home.glob("lib/*/site-packages")
    (packages_of_home / "dependencies.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}

    def run(program: str, *words: str) -> str:
        command = [str(home / "bin" / program), *words]
        done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert Path(run("python", "-c", "import hedged; print(hedged.__file__)").strip()).is_relative_to(home)
    assert run("hedged", "--version") == f"hedged {hedged.__version__}\n"
    run("hedged", "data", "ndigit", "--offline", "--preview", "sheet.png", "--out", "index.npz")
    from PIL import Image

    with Image.open(tmp_path / "sheet.png") as sheet:
        for number in range(2):
            sheet.convert("L").resize((56, 28)).rotate(180 * number).save(tmp_path / f"{number}.png")
    told = json.loads(run("hedged", "match", "hedged:ndigit-2d", "0.png", "1.png", "--json"))
    assert 0 <= told["match_probability"] <= 1
