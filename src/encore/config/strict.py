"""What all models of the configuration share: they are strict, and count with a few kinds of numbers."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
Length = Annotated[int, Field(ge=3)]  # [CLS], a word piece, [SEP]
Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """Unknown keys are errors, numbers are finite, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    renamed: ClassVar[dict[str, str]] = {}  # keys of older versions: what each is called now
