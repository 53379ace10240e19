"""Published values and gaps, with which measured ones are compared."""

from typing import NoReturn

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from idiolect.core.errors import unknown
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import METRICS


class Strict(BaseModel):
    """A frozen pydantic model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Loss(Metric):
    """Loss, mean over the samples of the loss that the method trains with, without the L2 term (lower is better).

    Every evaluation has it, next to the metrics.
    """

    name, column, task, higher = "loss", "loss", "classification", False

    def sample(self, outputs: object, label: object) -> NoReturn:
        """Not used: evaluations take the objective's loss."""
        raise NotImplementedError


LOSS = Loss()


def published_metric(name: str) -> Metric:
    """The metric that a published value is of, by its name; the loss among them."""
    return LOSS if name == LOSS.name else METRICS[name]


class Published(Strict):
    """A published value of one named model, with its standard deviation and the margin `within`.

    model: the named model that it is of. value, std, half_width, within: in per cent if the metric is shown in per
    cent (accuracy), else in the metric's units (mse). std: its standard deviation over runs. half_width: half of its
    95 % confidence interval, where the paper gives that and no deviation. within: the difference that does not
    matter. runs: of how many runs the value is the mean; 1 where the paper does not say. row: its row in the paper's
    table. metric: by default accuracy or mse, by the data's task; "loss" too. other_data: how the data differ from
    the paper's, where they do; filled in where a loader notes that its data are incomplete. explained: the run that
    shows why the measured value differs, where one does.
    """

    model: str
    value: float
    std: float | None = Field(default=None, ge=0)
    half_width: float | None = Field(default=None, ge=0)
    within: float = Field(default=1.0, ge=0)
    runs: int = Field(default=1, ge=1)
    row: str = ""
    metric: str = ""
    other_data: str = ""
    explained: str = ""

    @field_validator("metric")
    @classmethod
    def _known(cls, name: str) -> str:
        if name and name not in (known := {*METRICS, LOSS.name}):
            raise unknown("metric", name, known)
        return name

    @model_validator(mode="after")
    def _one_spread(self) -> "Published":
        if self.std is not None and self.half_width is not None:
            raise ValueError("a published value has std or half_width, not both; give what the paper prints after ±")
        return self

    @property
    def given(self) -> float | None:
        """What the paper gives after ±: a standard deviation, or half of a confidence interval."""
        return self.std if self.half_width is None else self.half_width


class Gap(Strict):
    """A published difference in accuracy between two models, in percentage points: larger minus smaller.

    larger, smaller: "method label/model". value: the difference. within: what does not matter.
    explained: the run that shows why the measured gap differs.
    """

    larger: str
    smaller: str
    value: float
    within: float = Field(default=0.5, ge=0)
    explained: str = ""
