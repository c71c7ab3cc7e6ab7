"""What cells find in the place of things that could not be loaded, and how a skill becomes callable."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any, NoReturn

REBUILD_HINT = "remove ~/.prime/agent/kernel-venv, so that it is built anew, and restart the agent"


class _PrimeAgentMissingRlm:
    """Stands for `rlm` when that can't be imported: everything it offers says how to mend it."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def _fail(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"rlm can't be used ({self._reason}): {REBUILD_HINT}")

    __call__ = run = find_models = list_subagents = delete_subagent = host_request = _fail

    def __repr__(self) -> str:
        return f"<rlm is missing: {self._reason}>"


class _PrimeAgentUnavailableSkill:
    """Stands for a skill that failed to import: calling it, or anything of it, raises its import error."""

    def __init__(self, name: str, error: BaseException) -> None:
        self._name = name
        self._error = error

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(self._message()) from self._error

    def __getattr__(self, attribute: str) -> Any:
        # Names that Python and IPython ask every object for must look absent.
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return self

    def __repr__(self) -> str:
        return f"<{self._message()}>"

    def _message(self) -> str:
        kind = type(self._error).__name__
        return f"the skill {self._name!r} is unavailable: its import failed with {kind}: {self._error}"


class _PrimeAgentCallableSkillModule(ModuleType):
    """A skill's module that can itself be called: `await skill(…)` stands for `await skill.run(…)`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)


def make_callable(module: ModuleType) -> ModuleType:
    """Gives a skill's module the call, signature and docstring of its `run`; one without `run` stays as it is."""
    run = getattr(module, "run", None)
    if not callable(run):
        return module
    # A class of its own for each: a signature and a docstring belong to the class.
    namespace = {"__doc__": inspect.getdoc(run) or module.__doc__}
    kind = type("_PrimeAgentCallableSkillModule", (_PrimeAgentCallableSkillModule,), namespace)
    module.__class__ = kind
    try:
        module.__signature__ = inspect.signature(run)
    except (TypeError, ValueError):
        pass  # A `run` that is not written in Python; its call then shows no parameters.
    return module
