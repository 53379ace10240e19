"""What a paper published: numbers and gaps that measured ones are set beside."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A frozen table that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Published(Strict):
    """A published number: which named model it is of, the value, its standard deviation, the tolerance.

    value, std and within are in per cent (accuracy, macro-F1) or in the data's units (mse). metric: what it is a
    value of, "score" (accuracy or mse) or "macro-f1".
    """

    model: str
    value: float
    std: float | None = None
    within: float = 1.0
    row: str = ""
    metric: Literal["score", "macro-f1"] = "score"


class Gap(Strict):
    """A published difference in accuracy between two models, in points: larger minus smaller.

    larger, smaller: "method label/model".
    """

    larger: str
    smaller: str
    value: float
    within: float = 0.5
