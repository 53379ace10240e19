"""What a paper published: numbers and gaps that measured ones are set beside."""

from pydantic import BaseModel, ConfigDict, field_validator

from idiolect.core.errors import unknown
from idiolect.metrics.registry import METRICS


class Strict(BaseModel):
    """A frozen table that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Published(Strict):
    """A published number: which named model it is of, the value, its standard deviation, the tolerance.

    value, std and within are in per cent where the metric is read so (accuracy), else as the metric is (mse). metric:
    what it is a value of; where none is named, accuracy or mse, as the data say.
    """

    model: str
    value: float
    std: float | None = None
    within: float = 1.0
    row: str = ""
    metric: str = ""

    @field_validator("metric")
    @classmethod
    def _known(cls, name: str) -> str:
        if name and name not in METRICS:
            raise unknown("metric", name, METRICS)
        return name


class Gap(Strict):
    """A published difference in accuracy between two models, in points: larger minus smaller.

    larger, smaller: "method label/model".
    """

    larger: str
    smaller: str
    value: float
    within: float = 0.5
