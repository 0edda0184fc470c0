"""The options of the log."""

from typing import Annotated, ClassVar, Literal

from pydantic import PlainValidator

from tardis_fast.options.base import OptionsModel, option
from tardis_fast.options.forms import Form, read_one_of

LogFormat = Annotated[
    Literal["text", "json"], PlainValidator(read_one_of("text", "json")), Form("text|json")
]


class LogOptions(OptionsModel):
    """Log: how records are written to standard error."""

    section: ClassVar[str] = "log"
    flag_prefix: ClassVar[str] = "log-"

    format: LogFormat = option(
        "Text for people, or a JSON object a line.", value="text", in_help=True
    )
