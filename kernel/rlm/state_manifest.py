"""The files of a saved namespace, and its manifest: what was saved, what was not, and why."""

from __future__ import annotations

import io
import json
import os
from typing import Any

STATE_FILE = "kernel-state.dill"
MANIFEST_FILE = "kernel-state.json"
# Where a state file goes that this kernel has not restored completely, instead of being overwritten.
KEPT_FILE = "kernel-state.unrestored.dill"


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a folder; empty when there is none that can be read."""
    try:
        with io.open(os.path.join(folder, MANIFEST_FILE), encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def write_manifest(folder: str, manifest: dict[str, Any]) -> None:
    """Replaces the manifest of a folder at once."""
    path = os.path.join(folder, MANIFEST_FILE)
    unfinished = f"{path}.new-{os.getpid()}"
    with io.open(unfinished, "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
    os.replace(unfinished, path)
