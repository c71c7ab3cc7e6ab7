"""Loads Python skills, so that cells can use them by name."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import site
import sys
from types import ModuleType
from typing import Any, Optional

from rlm.stubs import _PrimeAgentUnavailableSkill, make_callable


class SkillError(ImportError):
    """A skill can't be loaded under its name."""


def load_all(skills: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Optional[str]]]:
    """What cells find under each skill's import name, and why it is not the skill, or None.

    A skill: `name`, `import_name`, and `path`, the folder that holds the package. The folders become
    importable after everything else, the packages themselves whatever else has their name.
    """
    for skill in skills:
        if skill["path"] not in sys.path:
            sys.path.append(skill["path"])
    found: dict[str, Any] = {}
    problems: dict[str, Optional[str]] = {}
    for skill in skills:
        name = skill["import_name"]
        try:
            found[name] = make_callable(load(name, skill["path"]))
            problems[name] = None
        except (Exception, SystemExit) as error:
            found[name] = _PrimeAgentUnavailableSkill(skill["name"], error)
            problems[name] = f"{type(error).__name__}: {error}"
    return found, problems


def load(name: str, folder: str) -> ModuleType:
    """Imports the package `name` of `folder`, even if a project on `sys.path` has a module of that name."""
    package = os.path.join(folder, name)
    path = os.path.join(package, "__init__.py")
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == path:
        return loaded
    if is_installed(name):
        raise SkillError(f"an installed module has the name {name!r} already: rename the skill's package")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[package])
    if spec is None or spec.loader is None:
        raise SkillError(f"there is no package {name!r} in {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def is_installed(name: str) -> bool:
    """Whether Python itself or an installed package has a module of this name."""
    if name in sys.stdlib_module_names:
        return True
    folders = tuple(os.path.join(folder, "") for folder in [*site.getsitepackages(), site.getusersitepackages()])
    spec = importlib.machinery.PathFinder.find_spec(name)
    return spec is not None and bool(spec.origin) and str(spec.origin).startswith(folders)
