"""`hedged paper`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged._parallel import cores
from hedged.cli._output import Json, examples, print_json, print_table, say
from hedged.errors import ConfigError, RunError

if TYPE_CHECKING:
    from hedged.paper.exhibits import Exhibit

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A table or figure: see `hedged paper list`.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for models and results.")]
OUT = Path("runs/paper")
COMMITTED = Path("results/paper")


@app.callback()
def paper() -> None:
    """Reproduce the paper's tables and figures."""


@app.command("list", epilog=examples("hedged paper list"))
def list_all(as_json: Json = False) -> None:
    """List the tables and figures."""
    from hedged.paper.catalogue import FIGURES, NAMES, TABLES, exhibit
    from hedged.paper.workers import together

    rows = []
    for name in NAMES:
        shown = exhibit(name)
        kind = "table" if name in TABLES else "figure" if name in FIGURES else "text"
        rows.append((name, kind, len(together(shown.needs({}))), shown.title))
    if as_json:
        print_json([dict(zip(("name", "kind", "models", "title"), row, strict=True)) for row in rows])
        return
    print_table("Tables and figures", ("name", "kind", "models", "title"), [tuple(map(str, row)) for row in rows])


@app.command(
    "run",
    epilog=examples(
        "hedged paper run main-task --only digits=2,dim=2",
        "hedged paper run embeddings-2d",
        "hedged paper run pets --data dogfacenet-112",
        "hedged paper run all --jobs 4",
    ),
)
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A table or figure, or all.")],
    only: Annotated[
        str, typer.Option("--only", metavar="KEY=VALUE,…", help="Only these cells of a table, such as digits=2,dim=2.")
    ] = "",
    out: Out = OUT,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, metavar="N", help="Models to train at once, one thread each.")
    ] = cores(),
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="For pets: the photos, one subfolder per pet, named by its number."),
    ] = None,
) -> None:
    """Reproduce a table or figure: train and evaluate its models.

    Writes DIR/NAME.json or DIR/NAME.png. Models are cached in DIR/models by the hash of their config and shared between
    tables and figures; interrupted ones are resumed. `run all` reproduces everything and writes DIR/README.md, with all
    numbers beside the paper's; pets only with --data, since you must download the photos yourself.
    """
    from hedged._files import make_folder
    from hedged.paper.page import write_page
    from hedged.paper.shelf import Shelf
    from hedged.paper.workers import fill

    chosen = _chosen(only)
    if name == "all" and chosen:
        raise ConfigError("--only chooses cells of one table: name the table instead of all")
    wanted = _wanted(name, data)
    needs = [need for shown in wanted for need in shown.needs(chosen)]
    make_folder(out)
    shelf = Shelf(out / "models")
    fill(shelf, needs, jobs)
    for shown in wanted:
        for path in shown.write(shelf, out, chosen):
            say(str(path))
    if name == "all":
        say(str(write_page(shelf, out)))
    else:
        _show(name, out)


@app.command("show", epilog=examples("hedged paper show main-task", "hedged paper show kl --json"))
def show(name: Name, out: Out = OUT, as_json: Json = False) -> None:
    """Show the numbers of a table or figure beside the paper's.

    They are read from DIR, or else from the results that ship with the project.
    """
    from hedged.paper.catalogue import exhibit

    exhibit(name)
    for folder in (out, COMMITTED):
        if (folder / f"{name}.json").exists() or (folder / f"{name}.png").exists():
            _show(name, folder, as_json)
            return
    raise RunError(f"{name} is neither in {out} nor in {COMMITTED}: make it with `hedged paper run {name}`")


def _show(name: str, folder: Path, as_json: bool = False) -> None:
    from hedged.paper.page import load_cells, rows

    cells = load_cells(folder, name)
    if as_json:
        print_json(cells)
        return
    if (picture := folder / f"{name}.png").exists():
        say(f"picture: {picture}")
    if cells:
        header, lines = rows(cells)
        print_table(f"{name}, from {folder}", header, lines)


def _wanted(name: str, data: Path | None) -> list[Exhibit]:
    """What is to be made, all of it or one; of photos where there are any."""
    from hedged.paper.catalogue import NAMES, exhibit

    shown = [exhibit(each) for each in (NAMES if name == "all" else (name,))]
    if data is not None:
        return [each.of_photos(data) if each.needs_photos or name != "all" else each for each in shown]
    for each in shown:
        if each.needs_photos and name == "all":
            say(f"{each.name} is left out: it needs photos, as in `hedged paper run {each.name} --data DIR`")
        elif each.needs_photos:
            raise ConfigError(
                f"{name} needs photos: say where they are with --data DIR, a folder of a folder for each pet, such as "
                "dogfacenet-112 of DogFaceNet (docs/paper.md)"
            )
    return [each for each in shown if not each.needs_photos]


def _chosen(only: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in only.split(",")] if only else []
    chosen = {key.strip(): value.strip() for key, _, value in pairs}
    if len(chosen) < len(pairs) or not all((*chosen, *chosen.values())):
        raise ConfigError(f"--only takes key=value,…, each key once, such as digits=2,dim=2, got {only!r}")
    return chosen
