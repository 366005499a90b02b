"""The files of a source tree, as every lint sees them."""

import os
import subprocess
import sys

CXX = (".cpp", ".h", ".c", ".cc", ".hpp")
# Recorded or generated data: kept byte for byte, not written by hand.
DATA_FOLDERS = {"Inputs"}
DATA_SUFFIXES = (".safetensors", ".bin", ".npz", ".png", ".json")


def files(root):
    """Yields the tree's files, relative to `root`, in one fixed order."""
    try:
        # Files not yet added count too; what .gitignore names does not.
        listing = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            capture_output=True, check=True).stdout.decode()
        top = subprocess.run(
            ["git", "-C", root, "rev-parse", "--show-toplevel"],
            capture_output=True, check=True).stdout.decode().strip()
        if os.path.realpath(top) == os.path.realpath(root):
            names = {name for name in listing.split("\0") if name}
            return sorted(name for name in names
                          if os.path.isfile(os.path.join(root, name)))
    except (OSError, subprocess.CalledProcessError):
        pass
    # Not a checkout of its own: a release archive or a test's small tree.
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders
                      if not name.startswith((".git", "build", "install"))
                      and name != "__pycache__"]
        found += [os.path.relpath(os.path.join(folder, name), root)
                  for name in names]
    return sorted(found)


def is_data(name):
    parts = name.split("/")
    return bool(DATA_FOLDERS & set(parts[:-1])) or (
        name.endswith(DATA_SUFFIXES) and parts[-1] != "model.json")


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def finish(checked, what, errors):
    """Prints the errors, or what was checked, and exits accordingly."""
    for error in errors:
        print(error)
    if errors:
        sys.exit(1)
    if not checked:
        sys.exit("nothing to check: wrong root?")
    print(f"{checked} {what} checked")
