"""`Run`: a run folder, its state, what is in it, and every file name of it.

| file | written |
|---|---|
| config.toml | at the start: every setting; `hedged retrofit` writes it beside the model |
| log.jsonl | every few steps |
| checkpoint.safetensors | every few hundred steps, and on Ctrl-C |
| model.json, model.safetensors | at the end; `hedged.models` names and reads them |
| novelty.safetensors | before the model, or by `hedged novelty`; `hedged.novelty` names and reads it |
| metrics.json, metrics-PART.json | by `hedged evaluate` and `hedged demo` |
| report.html, report-PART.html | by `hedged evaluate --report` and `hedged demo` |
| calibration.json, reliability.png | by `hedged calibrate`; `hedged.decisions` reads the first |
| .lock | while a process trains into the folder, or fits a head there; says which |
| retrofit.json | by `hedged retrofit`; `hedged.retrofit` names and reads them |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, final

from hedged._files import CALIBRATION, make_folder, remove_parts, write_text
from hedged._locks import owning
from hedged._reading import read_json
from hedged.errors import ConfigError, RunError
from hedged.models import Embedder
from hedged.models.saved import DESCRIPTION
from hedged.training.checkpoint import Checkpoint, read_checkpoint
from hedged.training.config import Config, RunConfig, load_run_config

State = Literal["new", "unfinished", "finished"]


@final
@dataclass(frozen=True)
class Run:
    """A run folder: what training leaves behind, and what is measured of it.

    Args:
        folder: Where the run is or will be, a path or its text; it need not exist. The name of a shipped model, such
            as "hedged:ndigit-2d", will do where only `embedder` is asked for.

    >>> import tempfile
    >>> run = Run(tempfile.mkdtemp() + "/first")
    >>> run.state, run.metrics_file("unseen").name
    ('new', 'metrics-unseen.json')
    """

    folder: Path

    def __init__(self, folder: str | Path) -> None:
        object.__setattr__(self, "folder", Path(folder))

    # File names

    @property
    def config_file(self) -> Path:
        """Every setting of the run, as TOML."""
        return self.folder / "config.toml"

    @property
    def log_file(self) -> Path:
        """What training tells of itself, a line of JSON every few steps."""
        return self.folder / "log.jsonl"

    @property
    def checkpoint_file(self) -> Path:
        """The state of the training after some step."""
        return self.folder / "checkpoint.safetensors"

    @property
    def model_file(self) -> Path:
        """The description of the trained model: there once training has finished."""
        return self.folder / DESCRIPTION

    @property
    def calibration_file(self) -> Path:
        """The calibration of the model, for `hedged.decisions.load_decider`."""
        return self.folder / CALIBRATION

    @property
    def reliability_file(self) -> Path:
        """The picture of the calibration."""
        return self.folder / "reliability.png"

    @property
    def lock_file(self) -> Path:
        """Held by the process that trains, or fits a head, into the folder."""
        return self.folder / ".lock"

    def metrics_file(self, part: str = "") -> Path:
        """Measurements.

        Args:
            part: The part of the data they are of, such as "unseen"; empty for the main test set.
        """
        return self.folder / f"metrics{_suffix(part)}.json"

    def report_file(self, part: str = "") -> Path:
        """The page of the measurements.

        Args:
            part: As for `metrics_file`.
        """
        return self.folder / f"report{_suffix(part)}.html"

    # What is in the folder

    @property
    def state(self) -> State:
        """How far training got: "finished" leaves a model, "unfinished" a checkpoint to resume from, "new" neither."""
        if self.model_file.exists():
            return "finished"
        return "unfinished" if self.checkpoint_file.exists() else "new"

    @cached_property
    def config(self) -> RunConfig:
        """The settings that the run was made with."""
        if not self.config_file.exists():
            raise RunError(
                f"{self.folder} holds a model without its {self.config_file.name}, which says what to evaluate it on: "
                "give a folder that `hedged train` or `hedged retrofit` has filled"
            )
        return load_run_config(self.config_file)

    @cached_property
    def embedder(self) -> Embedder:
        """The trained model; of an unfinished run, the command that finishes it."""
        if self.state == "unfinished":
            raise RunError(
                f"the run in {self.folder} is not finished, so there is no model yet: finish it with "
                f"`{self.resume_command}`"
            )
        return Embedder.load(self.folder)

    def trained(self) -> tuple[RunConfig, Embedder]:
        """The settings and the model of a finished run, which must be of one network."""
        embedder, config = self.embedder, self.config
        if mismatch := config.mismatch(embedder.architecture):
            raise RunError(
                f"{self.folder} holds the model of another config than {self.config_file.name}: {mismatch}; restore "
                "the files of one run"
            )
        return config, embedder

    @property
    def digest(self) -> str | None:
        """`Config.digest()` of the settings that the trained model was made with, as the model remembers it."""
        notes = self.embedder.notes
        return notes.get("digest", notes.get("fingerprint"))  # of models written before this key had this name

    @property
    def evaluated_threshold(self) -> float | None:
        """The log-odds from which on `hedged evaluate` took pairs for matches; None if it was not asked."""
        try:
            threshold = read_json(self.metrics_file())["decisions"]["threshold"]["log_odds"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return float(threshold) if isinstance(threshold, int | float) else None

    @property
    def resume_command(self) -> str:
        """What to type to go on with the run."""
        return f"hedged train {self.config_file} --out {self.folder} --resume"

    # Training into the folder

    @contextmanager
    def training(self, config: Config, resume: bool = False) -> Iterator[Checkpoint | None]:
        """The folder made ready, as `prepare` does, and this process's alone; refused while another trains into it.

        Args:
            config: The settings to train with.
            resume: Whether to go on from the last checkpoint, which is then yielded; without it, None.
        """
        if not self.folder.is_dir():
            self.prepare(config, resume)
        with self.owned():
            yield self.prepare(config, resume)

    @contextmanager
    def owned(self, wait: float = 0.0) -> Iterator[None]:
        """The folder, which is made if it is not there, as this process's alone; refused while it is another's.

        Args:
            wait: Seconds that another has to let go of it.
        """
        is_new = not self.folder.exists()
        make_folder(self.folder)
        try:
            with owning(self.lock_file, self._is_taken, wait):
                remove_parts(self.folder)
                yield
        finally:
            if is_new:
                with suppress(OSError):  # there is something in it, which is as it should be
                    self.folder.rmdir()

    def _is_taken(self, holder: str) -> RunError:
        return RunError(
            f"{self.folder} is being trained into by {holder}: wait until it is done, or choose another folder with "
            "--out"
        )

    def checkpoint(self, config: Config) -> Checkpoint:
        """The last checkpoint, if it is of a run with these settings; else a refusal.

        Args:
            config: The settings to resume with.
        """
        if not self.checkpoint_file.is_file():
            raise RunError(f"{self.folder} holds no checkpoint to resume from: start it without --resume")
        checkpoint = read_checkpoint(self.checkpoint_file)
        if checkpoint.digest != config.digest():
            raise RunError(
                f"{self.checkpoint_file} belongs to a run with another config: resume with the config of that run "
                f"({self.config_file}), or train into a new folder"
            )
        return checkpoint

    def prepare(self, config: Config, resume: bool = False) -> Checkpoint | None:
        """Make the folder ready for training; refuse one that cannot be written, or whose files would be lost.

        Args:
            config: The settings to train with.
            resume: Whether to go on from the last checkpoint, which is then returned; without it, None.
        """
        checkpoint = self.checkpoint(config) if resume else None
        if not resume and self._holds_another_run(config):
            raise RunError(
                f"{self.folder} already holds a run: continue it with --resume, or choose another folder with --out"
            )
        make_folder(self.folder)
        return checkpoint

    def keep_config(self, config: RunConfig) -> None:
        """Write config.toml, unless the one that is there says the same, perhaps with remarks.

        Settings that the weights do not depend on may differ when a run is resumed: photos may have moved.

        Args:
            config: The settings of the run.
        """
        if not self._says(config):
            write_text(self.config_file, config.to_toml())

    def _says(self, config: RunConfig) -> bool:
        """Whether config.toml is there, can be read, and has all these settings."""
        try:
            return load_run_config(self.config_file) == config
        except ConfigError:
            return False

    def _holds_another_run(self, config: Config) -> bool:
        """Whether anything would be lost; the same run, killed before its first checkpoint, has nothing to lose."""
        if self.state != "new":
            return True
        if self.config_file.exists():
            return load_run_config(self.config_file).digest() != config.digest()
        return self.log_file.exists()


def _suffix(part: str) -> str:
    return f"-{part}" if part else ""
