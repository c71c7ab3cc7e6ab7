"""`attach_image FILE…`, for shell cells."""

from __future__ import annotations

import argparse
import sys

from . import run
from .errors import ImageError


def main() -> None:
    """Attaches and prints what was done; exits with 1 and the reason when nothing was attached."""
    parser = argparse.ArgumentParser(
        prog="attach_image", description="Shows image files to the model: PNG, JPEG, GIF or WebP."
    )
    parser.add_argument("paths", nargs="+", metavar="FILE")
    try:
        print(run(*parser.parse_args().paths))
    except ImageError as error:
        sys.exit(f"attach_image: {error}")


main()
