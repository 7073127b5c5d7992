"""All claims in order, and the models they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from hedged._files import write_json
from hedged.errors import ConfigError
from hedged.paper import centroids, kl, kl_ellipsoids, main_task, number_line, soft_contrastive
from hedged.paper.claims import accuracy, cost, organisation, prior, uncertainty
from hedged.paper.claims.claim import Claim
from hedged.paper.exhibits import Exhibit, Only
from hedged.paper.shelf import Need, Shelf

CLAIMS: tuple[Callable[[Shelf], Claim], ...] = (
    accuracy.hedging_helps_most_when_corrupt,
    accuracy.soft_bounds_hard,
    uncertainty.eta_tells_corrupt,
    uncertainty.eta_tells_within_clean,
    uncertainty.distance_is_a_poor_proxy,
    organisation.axes_are_aligned,
    prior.beta_widens,
    uncertainty.novelty_matters_less,
    accuracy.many_dimensions_are_enough,
    cost.a_gaussian_costs_little,
    accuracy.plurality_is_milder,
    accuracy.corrupt_probes_are_hardest,
    uncertainty.eta_tells_most_of_corrupt_probes,
    prior.kl_helps,
    organisation.hedged_orders_the_line,
)
SHOWN = (main_task, soft_contrastive, centroids, kl_ellipsoids, kl, number_line)  # whose models they use


@final
@dataclass(frozen=True)
class Claims(Exhibit):
    """Lines of the text that are neither a table nor a figure."""

    name: str = "claims"
    title: str = "The claims of the text"

    def needs(self, only: Only) -> list[Need]:
        if only:
            raise ConfigError("--only chooses cells of a table; claims are made all at once: leave it out")
        shown = [need for module in SHOWN for need in module.EXHIBIT.needs({})]
        return [*shown, *(Need(config, ("seen",)) for config in accuracy.many_dimensions().values())]

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        path = folder / f"{self.name}.json"
        write_json(path, [asdict(claim(shelf)) for claim in CLAIMS])
        return [path]


EXHIBIT = Claims()
