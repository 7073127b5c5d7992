"""The verbs that write, by name."""

from __future__ import annotations

from faults import files, models, stores
from faults.verb import Verb

VERBS: dict[str, type[Verb]] = {
    verb.name: verb
    for verb in (
        models.Train,
        models.TrainOnPhotos,
        models.Resume,
        models.Retrofit,
        models.Evaluate,
        models.Calibrate,
        models.Novelty,
        models.Export,
        stores.IndexBuild,
        stores.IndexAdd,
        stores.IndexRemove,
        stores.IndexRepair,
        stores.IndexAudit,
        stores.Search,
        stores.Cluster,
        files.Embed,
        files.EmbedTable,
        files.DataSet,
        files.PaperRun,
    )
}
