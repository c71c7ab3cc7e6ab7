"""Makes an image smaller with Pillow, where that is installed."""

from __future__ import annotations

import io
from typing import Any

from .errors import ImageError
from .formats import Picture

# What the host scales to anyway.
MAX_EDGE_PX = 1_568
JPEG_QUALITY = 85
BACKGROUND = (128, 128, 128)


def shrink(picture: Picture, max_bytes: int) -> tuple[Picture, list[str]]:
    """A smaller JPEG of the picture, and what was done to it. ImageError when that is not possible."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ImageError(
            f"has {len(picture.data)} bytes, more than {max_bytes}, and there is no Pillow to scale it with:"
            f" make it smaller first, {MAX_EDGE_PX} pixels an edge are enough"
        ) from None
    try:
        with Image.open(io.BytesIO(picture.data)) as opened:
            image = ImageOps.exif_transpose(opened)
        before = image.size
        image.thumbnail((MAX_EDGE_PX, MAX_EDGE_PX))
        image, notes = _opaque(Image, image)
        result = io.BytesIO()
        image.save(result, "JPEG", quality=JPEG_QUALITY)
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError(f"can't be decoded: {error}") from None
    size = "{}×{}".format(*before)
    changes = [f"scaled down from {size} and converted to JPEG", *notes]
    return Picture("image/jpeg", image.width, image.height, result.getvalue()), changes


def _opaque(module: Any, image: Any) -> tuple[Any, list[str]]:
    """The image in RGB, since JPEG has no transparency."""
    if image.mode not in ("RGBA", "LA", "PA") and "transparency" not in image.info:
        return image.convert("RGB"), []
    image = image.convert("RGBA")
    if image.getextrema()[3][0] == 255:
        return image.convert("RGB"), []
    backdrop = module.new("RGBA", image.size, (*BACKGROUND, 255))
    return module.alpha_composite(backdrop, image).convert("RGB"), ["transparency shown as grey"]
