"""The guide "From notebook to production" and its examples: what they show works."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from serve.running import Running, free_port
from typer.testing import CliRunner

from hedged.cli import app

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "examples" / "serve"


def block(language: str, word: str) -> str:
    (found,) = (one for one in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL) if word in one)
    return str(found)


@pytest.fixture
def photos(service: Running, tmp_path: Path) -> Path:
    for name, source in (("a.jpg", "00-0.png"), ("b.jpg", "00-1.png")):
        shutil.copy(service.place.pictures / source, tmp_path / name)
    return tmp_path


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_calls_with_curl_are_answered(service: Running, photos: Path) -> None:
    script = block("sh", "curl -s").replace("label=Rex", "label=00")
    names = {"ADDRESS": service.address, "KEY": service.write}
    done = subprocess.run(
        ["bash", "-eu"], input=script, env=os.environ | names, cwd=photos, capture_output=True, text=True, check=True
    )
    health, match, who, found, enrolled, removed = answers(done.stdout)
    assert health["status"] == "ok"
    assert match["decision"] in ("accept", "reject", "abstain")
    assert who["results"][0]["candidates"]["coverage"] == 0.8
    assert [hit["label"] for hit in found["results"][0]["hits"]] == ["00"] * 4
    assert enrolled["ids"] == ["rex-5.jpg"]
    assert removed == {"removed": 1}


def answers(output: str) -> list[Any]:
    """Documents of JSON, one after the other."""
    decoder, place, found = json.JSONDecoder(), 0, list[Any]()
    while place < len(output):
        content, place = decoder.raw_decode(output, place)
        found.append(content)
    return found


def test_the_client_does_what_the_guide_shows(
    service: Running, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(photos)
    for _ in range(2):
        exec(block("python", "Client("), {"address": service.address, "key": service.write})
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("00 ")
    assert said[-1].startswith("409 the store has 'rex-5.jpg' already")
    with service.client() as client:
        assert client.remove(["rex-5.jpg"]) == 1


def test_the_client_takes_what_the_guide_says() -> None:
    program = (
        "import sys; before = set(sys.modules); import hedged.client\n"
        "names = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(names - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["hedged", "lazy_loader"]


def test_every_call_is_in_the_guide() -> None:
    from hedged.serve.calls import router

    for route in router.routes:
        path = route.path  # type: ignore[attr-defined]
        assert f" {path.removesuffix('/dismiss')}" in GUIDE or path.endswith("/dismiss"), path


def test_the_compose_file_starts_what_there_is() -> None:
    content = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
    service = content["services"]["service"]
    assert (EXAMPLES / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    check_words(service["command"])
    assert set(content["volumes"]) == {"database"}


def test_the_container_starts_what_there_is() -> None:
    lines = (EXAMPLES / "Containerfile").read_text(encoding="utf-8").splitlines()
    (command,) = (json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    check_words(command)


def test_the_container_takes_what_it_needs_by_name() -> None:
    lines = (EXAMPLES / "Containerfile").read_text(encoding="utf-8").splitlines()
    copies = [line.split()[1:-1] for line in lines if re.match(r"\s*(COPY|ADD)\b", line, re.IGNORECASE)]
    taken = sorted(name for copied in copies for name in copied)
    assert taken == ["LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "src"]
    (user,) = re.findall(r"--uid (\d+)", "\n".join(lines))
    assert f"chown -R {user} data" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.heavy
def test_the_container_is_built_and_knows_its_commands() -> None:
    found = (name for name in ("podman", "docker") if shutil.which(name) and works(name, "info"))
    engine = next(found, None)
    if engine is None:
        pytest.skip("needs podman or docker, with what it runs on")
    name = f"hedged-test-{os.getpid()}"
    build = [engine, "build", "-f", str(EXAMPLES / "Containerfile"), "-t", name, str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    try:
        for words in (["serve", "--help"], ["key", "/tmp/keys.json", "front-end"]):
            assert works(engine, "run", "--rm", name, *words)
        said = subprocess.run([engine, "run", "--rm", name], capture_output=True, text=True, check=False)
        assert "there is no" in said.stderr + said.stdout
    finally:
        works(engine, "rmi", name)


def works(*words: str) -> bool:
    """Whether a command ends well."""
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_the_unit_starts_what_there_is() -> None:
    unit = (EXAMPLES / "hedged.service").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=.*?/hedged (.*)$", unit, re.MULTILINE)
    check_words(command.split())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit() -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", EXAMPLES / "hedged.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def check_words(words: list[str]) -> None:
    """A command with all options known: what is refused is the run or the keys, which are not here."""
    said = CliRunner().invoke(app, [*words, "--port", str(free_port())])
    assert said.exit_code != 0
    assert "No such option" not in said.output + str(said.exception)
    assert "there is no" in said.output + str(said.exception), said.output
