#!/usr/bin/env python3
"""Pins tests/requirements.in with hashes: writes tests/requirements.txt.

Run it with Python 3.11 on x86-64 Linux, for which the wheels are picked. The list names every package by hand instead of what the packages
declare: PyPI's torch declares 3 GB of CUDA libraries (tools/cuda_stubs.py stands in for them) and executorch several packages for other
hardware.
"""
import json
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"


def main():
    source = TESTS / "requirements.in"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]
    report = subprocess.run([*command, "--report", "-", "--requirement", source], check=True, capture_output=True, text=True).stdout
    lines = ["# Made by tools/pin_requirements.py from requirements.in, for Python 3.11 on x86-64 Linux."]
    for package in json.loads(report)["install"]:
        metadata, archive = package["metadata"], package["download_info"]["archive_info"]
        lines.append(f"{metadata['name']}=={metadata['version']} --hash=sha256:{archive['hashes']['sha256']}")
    (TESTS / "requirements.txt").write_text("\n".join([lines[0], *sorted(lines[1:], key=str.lower)]) + "\n")


main()
