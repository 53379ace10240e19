"""Published values and gaps, with which measured ones are compared."""

from pydantic import BaseModel, ConfigDict, field_validator

from idiolect.core.errors import unknown
from idiolect.metrics.registry import METRICS


class Strict(BaseModel):
    """A frozen pydantic model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Published(Strict):
    """A published value of one named model, with its standard deviation and the tolerance `within`.

    value, std, within: in per cent if the metric is shown in per cent (accuracy), else in the metric's units (mse).
    row: its row in the paper's table. metric: by default accuracy or mse, by the data's task.
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
    """A published difference in accuracy between two models, in percentage points: larger minus smaller.

    larger, smaller: "method label/model".
    """

    larger: str
    smaller: str
    value: float
    within: float = 0.5
