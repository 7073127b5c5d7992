"""What the calls answer, for the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Share = Annotated[float, Field(ge=0, le=1)]
Numbers = list[float] | list[list[float]]


class Error(BaseModel):
    """Why a request was refused: what was given, what was expected, what to do."""

    error: Annotated[str, Field(examples=["file 1 is damaged (cannot identify image file): send it again"])]


class Health(BaseModel):
    """Whether the service works."""

    status: Literal["ok"]
    model: Annotated[Literal["current", "replaced"], Field(description="replaced: restart to serve the new files")]


class Embedding(BaseModel):
    """What the model knows of an input."""

    kind: Annotated[str, Field(examples=["gaussian"])]
    mean: Numbers
    variance: Numbers
    uncertainty: Share
    novelty: Share | None


class Embeddings(BaseModel):
    """An embedding for each input."""

    embeddings: list[Embedding]


class Calibrated(BaseModel):
    """A calibrated probability, where so many pairs match."""

    probability: Share
    base_rate: Share


class Dimension(BaseModel):
    """What one dimension says about a pair."""

    dimension: int
    difference: float
    spread: float
    log_odds: float | None


class Match(BaseModel):
    """Whether two inputs match, and why."""

    probability: Share
    log_odds: float
    calibrated: Calibrated | None
    decision: Literal["accept", "reject", "abstain", "same", "different", "unsure"]
    rule: str
    uncertainty: list[Share]
    novelty: list[Share | None]
    distance: float
    dimensions: list[Dimension]


class Hit(BaseModel):
    """A stored item that matches."""

    rank: int
    id: str
    label: str | None
    probability: Share
    log_odds: float
    uncertainty: Share
    metadata: dict[str, Any]


class Hits(BaseModel):
    """The items that match an input best."""

    uncertainty: Share
    novelty: Share | None
    hits: list[Hit]


class Found(BaseModel):
    """The hits of each input."""

    results: list[Hits]


class Candidate(BaseModel):
    """An identity that an input may show."""

    label: str
    probability: Share
    log_odds: float
    images: int
    items: list[str]


class Candidates(BaseModel):
    """A set that holds the right answer as often as was promised."""

    labels: list[str]
    nobody: bool
    coverage: Share


class Who(BaseModel):
    """Who an input shows; a label of null: nobody in the store."""

    label: str | None
    probability: Share
    none_probability: Share
    uncertainty: Share
    novelty: Share | None
    decision: Literal["accept", "reject", "abstain"] | None
    best: list[Candidate]
    candidates: Candidates | None


class Identified(BaseModel):
    """Who each input shows."""

    results: list[Who]


class Item(BaseModel):
    """A stored item."""

    id: str
    label: str | None
    uncertainty: Share
    novelty: Share | None
    metadata: dict[str, Any]


class Items(BaseModel):
    """Some of the stored items."""

    total: int
    items: list[Item]


class Enrolled(BaseModel):
    """What was stored; it is on disk."""

    ids: list[str]
    warnings: list[str]


class Removed(BaseModel):
    """How many items were removed."""

    removed: int


class Map(BaseModel):
    """Items in a plane; one standard deviation of each as an ellipse."""

    total: int
    explained: Share
    ids: list[str]
    labels: list[str]
    label: Annotated[list[int], Field(description="a number of `labels`, or -1")]
    x: list[float]
    y: list[float]
    major: list[float]
    minor: list[float]
    angle: list[float]
    uncertainty: list[float]


class Mislabelled(BaseModel):
    """An item whose label is likely wrong."""

    id: str
    label: str
    probability: Share
    likelier: str
    likelier_probability: Share
    likelier_items: list[str]


class Duplicates(BaseModel):
    """Two items under two names that likely show one identity."""

    first: str
    second: str
    first_label: str
    second_label: str
    probability: Share


class Divided(BaseModel):
    """A label that likely stands for two identities."""

    label: str
    probability: Share
    first: list[str]
    second: list[str]


class Poor(BaseModel):
    """An item that matches everybody."""

    id: str
    label: str
    probability: Share
    uncertainty: Share


class Audit(BaseModel):
    """What may be wrong with the store."""

    items: int
    identities: int
    dismissed: int
    mislabelled: list[Mislabelled]
    duplicates: list[Duplicates]
    divided: list[Divided]
    poor: list[Poor]


class Finding(BaseModel):
    """Names a finding of the audit: an item, two duplicates, or a label that is divided."""

    kind: Literal["mislabelled", "duplicates", "divided", "poor"]
    ids: Annotated[list[str], Field(min_length=1, max_length=2, examples=[["rex-4.jpg"]])]


class Done(BaseModel):
    """What was done."""

    done: str


class Scores(BaseModel):
    """Numbers of calibration pairs, sorted."""

    match: list[float]
    non_match: list[float]


class Calibration(BaseModel):
    """How the service decides, and the pairs that it was calibrated on."""

    base_rate: Share
    reject_below: float
    accept_from: float
    reject_below_probability: Share
    accept_from_probability: Share
    scores: Scores | None
    calibrated: Scores | None


class Thresholds(BaseModel):
    """How the service decides."""

    base_rate: Share
    reject_below: float
    accept_from: float
    calibrator: dict[str, Any]


class Images(BaseModel):
    """The model takes images."""

    kind: Literal["images"]
    shape: list[int]


class Vectors(BaseModel):
    """The model takes vectors."""

    kind: Literal["vectors"]
    length: int


class Card(BaseModel):
    """The model card: what is served."""

    name: str
    fingerprint: str
    input: Images | Vectors
    dim: int
    match_model: dict[str, Any]
    novelty: bool
    store: str
    items: int
    labels: int
    pictures: bool
    role: Literal["read", "write"]
    calibration: Thresholds | None
