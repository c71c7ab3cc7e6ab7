"""The names and limits that this side shares with the host, from `contract.json`."""

from __future__ import annotations

import json
import os
from typing import Any

with open(os.path.join(os.path.dirname(__file__), "contract.json"), encoding="utf-8") as _file:
    CONTRACT: dict[str, Any] = json.load(_file)
