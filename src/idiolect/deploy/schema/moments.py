"""Mean and sum of squared deviations of several groups, and of all of them together."""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field

Finite = Annotated[float, AllowInfNan(False)]


class Moments(BaseModel):
    """Of `count` numbers: their mean, and m2 = sum (x - mean)^2. constant: they are all the mean."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    count: int = Field(ge=1)
    mean: Finite
    m2: Finite = Field(ge=0)
    constant: bool = False


def pooled(parts: Sequence[Moments]) -> Moments:
    """The moments of all numbers together: mean = sum n_i mean_i / n; m2 = sum m2_i + sum n_i (mean_i - mean)^2.

    Chan, Golub and LeVeque (1983). There is one part at least.
    """
    count, origin = sum(part.count for part in parts), parts[0].mean
    mean = origin + math.fsum(part.count * (part.mean - origin) for part in parts) / count
    m2 = math.fsum([part.m2 for part in parts] + [part.count * (part.mean - mean) ** 2 for part in parts])
    constant = all(part.constant and part.mean == origin for part in parts)
    return Moments(count=count, mean=mean, m2=0.0 if constant else m2, constant=constant)
