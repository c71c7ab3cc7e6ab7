"""Shows image files to the model."""

from __future__ import annotations

import base64
import os
from typing import Any, Union

from rlm import displays
from rlm.confirmation import Confirmation

from . import loading
from .errors import ImageError

__all__ = ["run"]

# "0" when the model takes no images.
VISION_VARIABLE = "PRIME_AGENT_VISION"


def run(*paths: Union[str, os.PathLike[str]]) -> Confirmation:
    """Show image files to yourself: PNG, JPEG, GIF (its first frame) or WebP.

        await attach_image("screenshot.png", "plots/loss.jpg")

    Large images are scaled down. Raises ImageError, and shows none of them, when one can't be shown or
    the model takes no images. Figures that a cell displays are shown without this.
    """
    if not paths:
        raise TypeError("attach_image takes the paths of one or more image files")
    if os.environ.get(VISION_VARIABLE) == "0":
        raise ImageError(
            "the model takes no images: examine the file with Python instead, and tell the user that"
            " another model is needed to see it"
        )
    images = [loading.load(path) for path in paths]
    for image in images:
        displays.publish("attachment", _attachment(image))
    return Confirmation("\n".join(f"attached {image.summary}" for image in images))


def _attachment(image: loading.Image) -> dict[str, Any]:
    data = base64.b64encode(image.picture.data).decode("ascii")
    return {"mime_type": image.picture.mime_type, "data": data, "path": image.place}
