"""Loads Python skills, so that cells can use them by name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import site
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Optional

from rlm.stubs import _PrimeAgentUnavailableSkill, make_callable


class SkillError(ImportError):
    """A skill can't be loaded under its name."""


class _SkillFinder:
    """Finds skills by name before anything else: a project may have a module of the same name."""

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        if name not in self.folders:
            return None
        file = module_file(name, self.folders[name])
        if not os.path.isfile(file):
            return None
        return importlib.util.spec_from_file_location(
            name, file, submodule_search_locations=[os.path.dirname(file)]
        )


_finder = _SkillFinder()


def load_all(skills: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Optional[str]]]:
    """What cells find under each skill's import name, and why it is not the skill, or None.

    A skill: `name`, `import_name`, and `path`, the folder that holds the package. What else is in the
    folders becomes importable after everything else.
    """
    for skill in skills:
        if skill["path"] not in sys.path:
            sys.path.append(skill["path"])
    taken = {skill["import_name"] for skill in skills if is_installed(skill["import_name"])}
    _finder.folders = {s["import_name"]: s["path"] for s in skills if s["import_name"] not in taken}
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    found: dict[str, Any] = {}
    problems: dict[str, Optional[str]] = {}
    for skill in skills:
        name = skill["import_name"]
        try:
            if name in taken:
                raise SkillError(f"an installed module has the name {name!r}: rename the skill's package")
            found[name] = make_callable(load(name, skill["path"]))
            problems[name] = None
        except (Exception, SystemExit) as error:
            found[name] = _PrimeAgentUnavailableSkill(skill["name"], error)
            problems[name] = f"{type(error).__name__}: {error}"
    return found, problems


def load(name: str, folder: str) -> ModuleType:
    """Imports the package `name` of `folder`."""
    file = module_file(name, folder)
    if not os.path.isfile(file):
        raise SkillError(f"there is no {file}")
    if getattr(sys.modules.get(name), "__file__", file) != file:
        # A module of the project, imported before the skill was known.
        del sys.modules[name]
    return importlib.import_module(name)


def module_file(name: str, folder: str) -> str:
    """Where a skill's package begins."""
    return os.path.join(folder, name, "__init__.py")


def is_installed(name: str) -> bool:
    """Whether Python itself or an installed package has a module of this name."""
    if name in sys.stdlib_module_names:
        return True
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    folders = tuple(os.path.join(folder, "") for folder in installed)
    spec = PathFinder.find_spec(name)
    return spec is not None and str(spec.origin or "").startswith(folders)
