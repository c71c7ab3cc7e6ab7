"""Tells what a Python is and which of our requirements it meets.

Run by the host with the Python in question, before anything else of ours, so
it must at least compile on any Python 2.7 or 3. The only argument is a JSON
object; the answer is one JSON object on file descriptor 3, since whatever
runs at start-up may print.
"""

from __future__ import print_function

import json
import os
import platform
import sys

ANSWER_FD = 3


def inspect(request):
    """The answer to {requirements: path, imports: bool}."""
    import sysconfig

    return {
        "executable": sys.executable,
        "base_executable": base_executable(),
        "version": list(sys.version_info[:3]),
        "implementation": platform.python_implementation(),
        "cache_tag": getattr(sys.implementation, "cache_tag", None) or "",
        "platform": platform_name(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "site_packages": sysconfig.get_path("purelib"),
        "lacks": [name for name in ("venv", "asyncio") if not is_there(name)],
        "requirements": [
            check(name, minimum, optional, request["imports"])
            for name, minimum, optional in read_requirements(request["requirements"])
        ],
    }


def base_executable():
    """The Python that a virtual environment was made from, or this one."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    if sys.prefix == sys.base_prefix or base != sys.executable:
        return base
    # Before 3.11 only the configuration file of the environment tells.
    with open(os.path.join(sys.prefix, "pyvenv.cfg")) as lines:
        config = dict(line.split("=", 1) for line in lines if "=" in line)
    home = {key.strip(): value.strip() for key, value in config.items()}.get("home", "")
    for name in ("python{0}.{1}".format(*sys.version_info), "python3", "python"):
        if os.path.exists(os.path.join(home, name)):
            return os.path.join(home, name)
    return base


def platform_name():
    """The platform as the host names it: linux-x64, linux-arm64-musl, darwin-arm64."""
    machine = platform.machine().lower()
    if sys.maxsize < 2**32:
        machine += "-32bit"
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    if sys.platform != "linux":
        return "{0}-{1}".format(sys.platform, machine)
    try:
        glibc = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        glibc = None
    return "linux-{0}{1}".format(machine, "" if glibc else "-musl")


def is_there(module):
    """Whether the module can be found, without importing it."""
    from importlib.util import find_spec

    return find_spec(module) is not None


def read_requirements(path):
    """The (name, oldest version, optional) of each line of requirements.txt."""
    with open(path) as lines:
        for line in lines:
            requirement, _, comment = line.partition("#")
            if requirement.strip():
                name, _, minimum = requirement.strip().partition(">=")
                yield name, minimum, "optional" in comment


def check(name, minimum, optional, imports):
    """What is installed of a requirement, and what is wrong with it, if anything."""
    from importlib import import_module, metadata

    found, problem = None, None
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
    if not is_there(name):
        problem = "is missing"
    elif found and numbers(found) < numbers(minimum):
        problem = "is {0}, older than {1}".format(found, minimum)
    elif imports:
        try:
            import_module(name + ".kernelapp" if name == "ipykernel" else name)
        except BaseException as error:  # a broken package may raise anything, SystemExit too
            problem = "fails to import: {0}: {1}".format(type(error).__name__, error)
    return {
        "name": name,
        "minimum": minimum,
        "optional": optional,
        "found": found,
        "problem": problem,
    }


def numbers(version):
    """The leading numbers of a version, for comparing."""
    parts = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return parts


def main():
    """Answer the request; an old Python is only asked for its version."""
    if sys.version_info < (3, 10):
        answer = {"executable": sys.executable, "version": list(sys.version_info[:3])}
    else:
        answer = inspect(json.loads(sys.argv[1]))
    os.write(ANSWER_FD, json.dumps(answer).encode("ascii"))


if __name__ == "__main__":
    main()
