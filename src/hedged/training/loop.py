"""Training: one loop, from a config to a folder with a model in it."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor, nn

from hedged._precision import single_by_default
from hedged._progress import progress
from hedged.data import Dataset
from hedged.distributions import Distribution
from hedged.errors import RunError, TrainingError, ValueRangeError
from hedged.losses import LossParts, PositiveWeight
from hedged.models import Embedder, channels_last
from hedged.training.build import Parts, build_data, build_parts
from hedged.training.checkpoint import Checkpoint, optimiser_tensors, restore_optimiser, save_checkpoint
from hedged.training.config import Config, TrainConfig
from hedged.training.journal import Journal, describe
from hedged.training.novelty import fit_novelty
from hedged.training.processes import ALONE, Processes
from hedged.training.run import Run
from hedged.training.warm_start import as_if_half_match, by_evidence

TO_CALIBRATE = 10  # identities, as `hedged.decisions` has it, which is not imported here

logger = logging.getLogger("hedged")


@single_by_default()
def train(
    config: Config, data: Dataset | None, run: str | Path, resume: bool = False, backbone: nn.Module | None = None
) -> Embedder:
    """Train on `data` and leave config, log, checkpoint and model in the folder `run`.

    Apart from data and backbone, a run depends on its config alone.

    Args:
        config: All settings.
        data: What to train on; if None, the part `train` of what `build_data(config)` gives, which is opened, and
            perhaps downloaded, once the folder has been found fit.
        run: The folder; one that holds a run is refused, unless it is to be resumed, and one that another process
            trains into always.
        resume: Go on from the last checkpoint, to the same weights as if the run had never stopped.
        backbone: The network that model.backbone = "module" stands for; those of its parameters that require a
            gradient are trained.

    Where `torch.distributed` is set up, or torchrun started this process, all processes train one model
    (`hedged.training.processes`). They share the folder, and the first of them alone writes to it.
    """
    with Processes.joined() as processes:
        processes.check(config.train.batch_size)
        return _train(config, data, Run(run), resume, backbone, processes)


def _train(
    config: Config, data: Dataset | None, run: Run, resume: bool, backbone: nn.Module | None, processes: Processes
) -> Embedder:
    with _made_ready(run, config, resume, processes) as checkpoint:
        if data is None:
            with processes.first_before_others():
                data = _opened(config)
        trainer = Trainer(config, build_parts(config, data, backbone), processes)
        if checkpoint:
            try:
                trainer.restore(checkpoint)
            except (RuntimeError, KeyError, IndexError) as error:
                what = f"the checkpoint in {run.folder} is of another model"
                raise RunError(f"{what}: start again in a new folder") from error
        if processes.is_first:
            run.keep_config(config)
        trainer.run(run)
        embedder = trainer.finished()
        if not processes.is_first:
            return embedder
        embedder.novelty_model = fit_novelty(embedder, config.seen(data), config.train.seed)
        embedder.notes = {"steps": trainer.step, "digest": config.digest(), "data": data.source}
        embedder.save(run.folder)
    return embedder


@contextmanager
def _made_ready(run: Run, config: Config, resume: bool, processes: Processes) -> Iterator[Checkpoint | None]:
    """The folder, which is the first process's alone; the others read the checkpoint, if there is one to resume from.

    Processes that were started anew after one of them was lost resume by themselves.
    """
    if processes.is_restarted and run.state != "new":
        resume = True
    with ExitStack() as opened:
        with processes.first_before_others():
            if processes.is_first:
                checkpoint = opened.enter_context(run.training(config, resume))
            else:
                checkpoint = run.checkpoint(config) if resume else None
        yield checkpoint


def _opened(config: Config) -> Dataset:
    """What is trained on; if too few identities are kept to calibrate with, it is said before the work."""
    splits = build_data(config)
    kept = splits.validation
    if kept is not None and kept.n_classes < TO_CALIBRATE:
        more = config.data.more_validation(TO_CALIBRATE, kept.n_classes + splits.train.n_classes)
        logger.warning(
            "%d identities are kept for validation, too few for `hedged calibrate`, which needs %d: to calibrate as "
            "well, stop, %s and train again",
            kept.n_classes,
            TO_CALIBRATE,
            more,
        )
    return splits.train


class Trainer:
    """The state of a run: parameters, the optimiser's memory, and the number of steps done.

    Args:
        config: All settings.
        parts: What they name, untrained: `build_parts(config, data)`.
        processes: That train it together.
    """

    def __init__(self, config: Config, parts: Parts, processes: Processes = ALONE) -> None:
        self.config, self.processes = config, processes
        self.step = 0
        self.schedule = PositiveWeight(config.loss.first_positive_weight, config.loss.positive_weight)
        self._begin(parts)

    def _begin(self, parts: Parts) -> None:
        """Begin a stage: training has one, or, by evidence, two."""
        self.parts, self.begun = parts, self.step
        self.trained = nn.ModuleList([parts.embedder, parts.loss])
        self.processes.begin_alike(self.trained)
        self.optimiser = _optimiser(self.trained, self.config.train)

    def run(self, run: Run) -> None:
        """Go on to the last step; on Ctrl-C, finish the step, save it and stop.

        Args:
            run: Where the log and the checkpoints go.
        """
        total, every = self.config.train.steps, self.config.train.checkpoint_every
        tell = self._telling(run) if self.processes.is_first else nullcontext(_say_nothing)
        with tell as told, _interrupts() as interrupted, _no_subnormals():
            while self.step < total:
                told(*self.take_step())
                stops = self.processes.any(interrupted())
                if self.processes.is_first and (stops or self.step % every == 0 or self.step == total):
                    save_checkpoint(run.checkpoint_file, self._checkpoint())
                if stops and self.step < total:
                    raise TrainingError(
                        f"interrupted after step {self.step} of {total}, which is saved: go on with "
                        f"`{run.resume_command}`"
                    )

    def finished(self) -> Embedder:
        """The embedder after the last step, ready to use."""
        if self.config.evidence_from is not None:
            as_if_half_match(self.parts)
        return self.parts.embedder.eval()

    @contextmanager
    def _telling(self, run: Run) -> Iterator[Callable[[LossParts, Distribution], None]]:
        """A function that tells of each step, by the log and the progress."""
        train, journal = self.config.train, Journal(run.log_file, self.step)
        with progress("training", train.steps, self.step) as update:

            def tell(loss: LossParts, z: Distribution) -> None:
                if self.step % train.log_every and self.step < train.steps:
                    update(self.step)
                    return
                record = describe(self.step, loss, z, self.parts.embedder.match_model)
                journal.write(record)
                update(self.step, record.get("warning") or f"loss {record['total']:.4f}")

            yield tell

    def take_step(self) -> tuple[LossParts, Distribution]:
        """One step of Adam on one batch: the loss and the embeddings of the batch, both from before the step."""
        if self.step == self.config.evidence_from:
            self._begin(by_evidence(self.config, self.parts))
        embedder, batches, loss_of, generator = self.parts
        embedder.train()
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate()
        loss_of.positive_weight = self.schedule(self.step / self.config.train.steps)
        batch = batches.batch(self.step)
        generator.manual_seed(_mix(self.config.train.seed, self.step))
        try:
            z = self.processes.together(embedder(channels_last(self.processes.share(batch.images))))
            loss = loss_of.parts(z, batch.labels)
        except ValueRangeError as error:
            raise self._diverged(str(error)) from error
        if not torch.isfinite(loss.total):
            raise self._diverged(f"the loss is {loss.total.item()}")
        self.optimiser.zero_grad(set_to_none=True)
        loss.total.backward()  # type: ignore[no-untyped-call]
        self.processes.average_gradients(self.trained.parameters())
        self.optimiser.step()
        self.processes.average_buffers(embedder)
        if not math.isfinite(sum(p.detach().sum().item() for p in embedder.parameters())):
            raise self._diverged("the weights are no longer finite")
        self.step += 1
        return loss, z

    def _diverged(self, what: str) -> TrainingError:
        return TrainingError(
            f"step {self.step + 1}: {what}; lower train.learning_rate (now {self.config.train.learning_rate:g}) and "
            "start again in a new folder"
        )

    def learning_rate(self) -> float:
        """Linear warm-up of each stage, within half a cosine down to zero."""
        train = self.config.train
        warm = min(1.0, (self.step - self.begun + 1) / (train.warmup + 1))
        return train.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * self.step / train.steps))

    def _of_the_loss_alone(self) -> list[tuple[str, nn.Parameter]]:
        """What is learnt along with the embedder and left behind when training ends, such as a curve of the means."""
        shared = {id(parameter) for parameter in self.parts.embedder.parameters()}
        return [(name, p) for name, p in self.parts.loss.named_parameters() if id(p) not in shared]

    def _checkpoint(self) -> Checkpoint:
        groups = {
            "model": self.parts.embedder.state_dict(),
            "loss": {name: parameter.detach() for name, parameter in self._of_the_loss_alone()},
            "optimiser": optimiser_tensors(self.optimiser),
        }
        tensors = {f"{group}/{name}": value for group, content in groups.items() for name, value in content.items()}
        return Checkpoint(self.step, self.config.digest(), tensors)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up the state of a checkpoint.

        Args:
            checkpoint: Of a run with the same settings.
        """

        def group(name: str) -> dict[str, Tensor]:
            prefix = f"{name}/"
            return {key.removeprefix(prefix): v for key, v in checkpoint.tensors.items() if key.startswith(prefix)}

        if not 0 <= checkpoint.step <= self.config.train.steps:
            raise RunError(f"the checkpoint is of step {checkpoint.step}, the run has {self.config.train.steps}")
        self.step = checkpoint.step
        second = self.config.evidence_from
        if second is not None and self.step > second:
            self._begin(by_evidence(self.config, self.parts, blank=True))
            self.begun = second
        self.parts.embedder.load_state_dict(group("model"))
        saved = group("loss")
        with torch.no_grad():
            for name, parameter in self._of_the_loss_alone():
                parameter.copy_(saved[name])
        restore_optimiser(self.optimiser, group("optimiser"))


def _say_nothing(loss: LossParts, z: Distribution) -> None:
    """What all but the first process tell."""


def _optimiser(trained: nn.Module, settings: TrainConfig) -> torch.optim.Optimizer:
    """Adam; with a decay of weights, AdamW, which leaves biases, normalisations and curves alone."""
    parameters = [p for p in trained.parameters() if p.requires_grad]
    decay = settings.weight_decay
    if not decay:
        return torch.optim.Adam(parameters, lr=settings.learning_rate, fused=True)
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


@contextmanager
def _no_subnormals() -> Iterator[None]:
    """Count numbers below 1e-38 as zero: moments of weights at rest decay to there, where arithmetic is far slower."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _mix(seed: int, step: int) -> int:
    """A seed for each step of each run (the finaliser of splitmix64), so that samples need no state to resume."""
    x = (seed * 0x9E3779B97F4A7C15 + step) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (x ^ (x >> 31)) % 2**63


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a question the loop asks between steps; a second one interrupts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, previous)
