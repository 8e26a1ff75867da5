"""ApisixProto: a Protobuf definition for the plugin grpc-transcode."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from crds.v2.common import Spec


class ApisixProtoSpec(Spec):
    """The definition."""

    content: Annotated[str, Field(min_length=1, max_length=2**20)] = Field(
        description="Text of a .proto file without imports, or a .pb file in base64."
    )
