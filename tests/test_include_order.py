#!/usr/bin/env python3
"""Checks the tree itself: includes go only to the rooms that CMakeLists.txt allows, every room has a README.md, and no committed file names
the folders of one machine or the hosts of package registries."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Split so that this file does not find itself. The system's folder for temporary files is no one machine's; what developers keep in it is.
FOLDERS = re.compile(r"(?<![\w./$}-])/(?:" + "|".join(["t" + "mp/(?:x|refvenv|build)", "wo" + "rk", "ro" + "ot", "home/[a-z]"]) + r")\b")
REGISTRIES = re.compile("|".join(["py" + r"pi\.org", "files.python" + "hosted", "deb" + r"ian\.org", "npm" + r"js\.(?:org|com)", "huggingface" + r"\.co"]))


def rooms():
    """Name to the names it may use, in CMakeLists.txt's order."""
    calls = re.findall(r"^genai_room\((\w+)([^)]*)\)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    result = {}
    for name, arguments in calls:
        uses = re.search(r"USES\s+([\w\s]+?)(?:LIBS|$)", arguments)
        result[name] = uses.group(1).split() if uses else []
    return result


def committed_files():
    """Names that git knows or would add; every file when this is not a git checkout."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return sorted(path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file())
    return sorted(path for path in ROOT.rglob("*") if path.is_file())


def text_files():
    for path in committed_files():
        if path.relative_to(ROOT).parts[:2] == ("tests", "data"):
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


class Tree(unittest.TestCase):
    def test_rooms_are_listed_lowest_first(self):
        seen = set()
        self.assertGreater(len(rooms()), 10)
        for name, uses in rooms().items():
            self.assertLessEqual(set(uses), seen, f"{name} uses a room that CMakeLists.txt lists after it")
            seen.add(name)

    def test_every_folder_is_a_room_with_a_readme(self):
        folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.rglob("*.[ch]*"))}
        self.assertLessEqual(folders, set(rooms()))
        for name in sorted(folders):
            self.assertTrue((SOURCE / name / "README.md").is_file(), f"src/{name} has no README.md")

    def test_includes_go_down(self):
        allowed = rooms()

        def below(name):
            return {name}.union(*(below(used) for used in allowed[name]))

        wrong = []
        checked = 0
        for name in allowed:
            permitted = below(name)
            for path in sorted((SOURCE / name).rglob("*")):
                if path.suffix not in (".c", ".h", ".cpp"):
                    continue
                for include in INCLUDE.findall(path.read_text()):
                    room = include.split("/")[0]
                    self.assertNotEqual(room, "..", f"{path.relative_to(ROOT)} includes {include}; name the room instead")
                    if room not in allowed:  # genai/status.h, a generated header, a neighbour
                        continue
                    checked += 1
                    if room not in permitted:
                        wrong.append(f"{path.relative_to(ROOT)} includes {include}")
        self.assertEqual(wrong, [])
        self.assertGreater(checked, 20)

    def test_public_headers_stand_alone(self):
        for path in sorted((ROOT / "include").rglob("*.h")):
            for include in INCLUDE.findall(path.read_text()):
                self.assertTrue(include.startswith("genai/"), f"{path.relative_to(ROOT)} includes {include}")

    def test_no_machine_paths_and_no_registry_hosts(self):
        wrong = []
        for path, text in text_files():
            for number, line in enumerate(text.splitlines(), 1):
                if FOLDERS.search(line) or REGISTRIES.search(line):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
