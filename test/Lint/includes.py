"""Checks #include lines and library links against the one-way order of rooms.

A room includes rooms to its left only; rooms of one level never include each
other. Usage: includes.py ROOT
"""

import os
import re
import sys

import tree

# Left to right. InitAll.h is the one header that knows every room.
LEVELS = [
    ["Support"],
    ["dialects"],
    ["Spec", "Runtime"],
    ["TargetInfo", "Weights"],
    ["Analysis"],  # counts what descriptions say, so it comes after Spec
    ["Validation"],
    ["Import", "Transforms", "Conversion", "Codegen"],
    ["Target"],
    ["Target/CPU"],
    ["Target/PTX"],  # whose programs' host code is a CPU's
    ["Pipelines"],
    ["InitAll.h"],
    ["Driver"],
    ["tools"],
    ["test", "examples"],
]
RANK = {room: rank for rank, level in enumerate(LEVELS) for room in level}

# What a room may not reach, not even through another header.
FORBIDDEN = {"Spec": ("mlir/",), "Runtime": ("mlir/", "llvm/")}
# One room wraps each of these; the rest go through it.
ONLY_USER = {"nlohmann/": {"Spec", "test"}, "Eigen/": {"Weights"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def room_of(name):
    """The room a file of the tree belongs to, or None outside the rooms."""
    parts = name.split("/")
    if name == "include/attune/InitAll.h":
        return "InitAll.h"
    if parts[:2] == ["include", "attune"]:
        parts = parts[2:]
    elif parts[0] == "lib":
        parts = parts[1:]
    elif parts[0] in ("dialects", "tools", "test", "examples"):
        return parts[0]
    else:
        return None
    if parts[0] == "Target" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else None


def resolve(source, included, names):
    """The tree's file that an #include line means, or None for others'."""
    here = os.path.normpath(os.path.join(os.path.dirname(source), included))
    for candidate in (here, "include/" + included, "dialects/" + included):
        if candidate in names:
            return candidate
    # Generated headers are not in the tree but live in the room they name.
    if included.startswith("attune/"):
        return "include/" + included
    if included.startswith("Attune/"):
        return "dialects/" + included
    return None


def allowed(user, used):
    return user == used or RANK[used] < RANK[user]


def check_includes(root, names, errors):
    includes = {}
    for name in names:
        if name.endswith(tree.CXX) and not tree.is_data(name) and room_of(name):
            text = tree.read(root, name)
            includes[name] = [
                (text.count("\n", 0, match.start(1)) + 1, match.group(1))
                for match in INCLUDE.finditer(text)]

    for name, lines in includes.items():
        room = room_of(name)
        if room not in RANK:
            errors.append(f"{name}:1: '{room}' is not a room of DESIGN's table")
            continue
        for line, included in lines:
            target = resolve(name, included, names)
            used = room_of(target) if target else None
            if used is not None and used not in RANK:
                errors.append(f"{name}:{line}: {included} is in no known room")
            elif used is not None and not allowed(room, used):
                errors.append(f"{name}:{line}: room {room} must not include "
                              f"{included} of room {used}")
            for prefix, users in ONLY_USER.items():
                if included.startswith(prefix) and room not in users:
                    errors.append(f"{name}:{line}: room {room} must not "
                                  f"include {included} itself")

    for name in includes:
        for prefix in FORBIDDEN.get(room_of(name), ()):
            path = find_path(name, prefix, includes, names)
            if path:
                errors.append(f"{name}:1: room {room_of(name)} reaches {prefix} "
                              f"through {' -> '.join(path)}")
    return len(includes)


def find_path(start, prefix, includes, names):
    """How `start` reaches a header under `prefix`: a list of hops, or None."""
    seen, queue = {start}, [(start, [])]
    while queue:
        name, path = queue.pop(0)
        for _, included in includes.get(name, ()):
            if included.startswith(prefix):
                return path + [included]
            target = resolve(name, included, names)
            if target in includes and target not in seen:
                seen.add(target)
                queue.append((target, path + [target]))
    return None


def check_links(root, names, errors):
    """The same order for attune_room(Attune... LINK Attune...)."""
    rooms, links = {}, []
    for name in names:
        if os.path.basename(name) != "CMakeLists.txt" or not room_of(name):
            continue
        text = re.sub(r"#.*", "", tree.read(root, name))
        for call in re.finditer(r"attune_room\(([^)]*)\)", text):
            words = call.group(1).split()
            rooms[words[0]] = room_of(name)
            start = words.index("LINK") + 1 if "LINK" in words else len(words)
            links += [(name, words[0], word) for word in words[start:]]
    for name, library, linked in links:
        if linked in rooms and not allowed(rooms[library], rooms[linked]):
            errors.append(f"{name}:1: {library} of room {rooms[library]} must "
                          f"not link {linked} of room {rooms[linked]}")


def main():
    root = sys.argv[1]
    names = set(tree.files(root))
    errors = []
    checked = check_includes(root, names, errors)
    check_links(root, names, errors)
    tree.finish(checked, "files", sorted(errors))


if __name__ == "__main__":
    main()
