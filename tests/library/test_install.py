#!/usr/bin/env python3
"""The installed library: what lands where, what libgenai.so exports, and the examples, built against a fresh prefix by pkg-config with gcc and
g++ and run on the `llama` fixture.

usage: test_install.py BUILD_DIRECTORY SOURCE_DIRECTORY
"""

import array
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SOURCE = (Path(argument).resolve() for argument in sys.argv[1:3]) if len(sys.argv) > 2 else (None, None)
QNN = Path(os.environ.get("GENAI_QNN_DIR", ""), "libQnnHtp.so")
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-O1"]
COMPILERS = {"gcc": ["gcc", "-std=gnu17", "-xc"], "g++": ["g++", "-std=gnu++17", "-xc++"]}


def run(*command, environment=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, timeout=300)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="genai-install-"))
        staged = cls.folder / "staged"
        done = run("cmake", "--install", BUILD, "--prefix", staged)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.prefix = cls.folder / "moved"  # an installed tree may be moved
        staged.rename(cls.prefix)
        (cls.library,) = cls.prefix.glob("lib*/**/libgenai.so")
        cls.environment = dict(
            os.environ, PKG_CONFIG_PATH=str(cls.library.parent / "pkgconfig"), LD_LIBRARY_PATH=str(cls.library.parent)
        )

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def build_example(self, name, compiler):
        flags = run("pkg-config", "--cflags", "--libs", "genai", environment=self.environment)
        self.assertEqual(flags.returncode, 0, flags.stderr)
        binary = self.folder / f"{name}-{compiler}"
        words = flags.stdout.split()
        done = run(*COMPILERS[compiler], *STRICT, SOURCE / "examples" / f"{name}.c", "-xnone", *words, "-lm", "-o", binary, environment=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return binary

    def test_the_prefix_holds_library_headers_pkgconfig_and_program(self):
        self.assertTrue(self.library.is_symlink())
        version = run(self.prefix / "bin/genai", "--version").stdout.split()[1]
        self.assertEqual(self.library.resolve().name, f"libgenai.so.{version}")
        soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", self.library).stdout).group(1)
        self.assertEqual(soname, "libgenai.so." + version.split(".")[0])
        self.assertTrue((self.library.parent / soname).exists())
        headers = {path.name for path in (self.prefix / "include/genai").iterdir()}
        self.assertEqual(headers, {path.name for path in (SOURCE / "include/genai").glob("*.h")})
        self.assertEqual(run("pkg-config", "--modversion", "genai", environment=self.environment).stdout.strip(), version)

    def test_only_the_public_interface_is_exported(self):
        """Every exported name is declared in a header with GENAI_API, and every name so declared is exported."""
        listed = run("nm", "-D", "--defined-only", self.library).stdout
        exported = {line.split()[2].split("@")[0] for line in listed.splitlines() if line.split()[1] != "A"}
        declared = set()
        for header in (SOURCE / "include/genai").glob("*.h"):
            text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
            for declaration in re.findall(r"^GENAI_API ([^;]*);", text, re.MULTILINE):
                declared.add(re.findall(r"\b(genai_\w+)\s*(?:\(|\[|$)", declaration)[0])
        self.assertEqual(exported, declared)
        self.assertGreater(len(declared), 100)

    def test_an_example_engine_answers_what_the_checkpoint_says(self):
        """The nearest embedding by cosine, computed here from the float32 numbers of the file."""
        checkpoint = SOURCE / "tests/data/checkpoints/llama"
        data = (checkpoint / "model.safetensors").read_bytes()
        length = int.from_bytes(data[:8], "little")
        entry = json.loads(data[8 : 8 + length])["model.embed_tokens.weight"]
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        numbers, (rows, columns) = array.array("f", data[begin:end]), entry["shape"]
        table = [numbers[row * columns : (row + 1) * columns] for row in range(rows)]
        norms = [math.sqrt(sum(x * x for x in row)) for row in table]

        def nearest(token):
            others = (row for row in range(rows) if row != token)
            return max(others, key=lambda row: sum(a * b for a, b in zip(table[token], table[row])) / norms[row])

        ids = [0, 7, 42, 100, 319]
        for compiler in COMPILERS:
            with self.subTest(compiler):
                binary = self.build_example("engine", compiler)
                out = self.folder / f"engine-{compiler}.out"
                done = run(binary, checkpoint, out, ",".join(map(str, ids)), environment=self.environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([int(word) for word in done.stdout.split(",")], [nearest(token) for token in ids])
                self.assertIn("[GenAIPipeline] InferenceStage completed in", done.stderr)
                self.assertNotIn("reused", done.stderr)
                again = run(binary, checkpoint, out, ",".join(map(str, ids)), environment=self.environment)
                self.assertEqual(again.stdout, done.stdout)
                self.assertIn("[GenAIPipeline] CompilationStage reused", again.stderr)
                failed = run(binary, checkpoint, out, "320", environment=self.environment)
                self.assertEqual(failed.returncode, 1)
                self.assertIn("token id 320 is outside the vocabulary of 320", failed.stderr)
                self.assertEqual(sorted(path.name for path in out.iterdir() if not path.name.startswith(".")), ["neighbours.table"])

    @unittest.skipUnless(QNN.is_file(), "Qualcomm's libraries are absent (GENAI_QNN_DIR)")
    def test_an_example_embeds_the_library_with_adapters_of_its_own(self):
        """Greedy ids are those of transformers in float32 (expected.json says which); the calibrated tokens are the adapter's own."""
        checkpoint = SOURCE / "tests/data/checkpoints/llama"
        expected = json.loads((checkpoint / "expected.json").read_text())
        prompt = ",".join(map(str, expected["input_ids"]))
        for compiler in COMPILERS:
            with self.subTest(compiler):
                binary = self.build_example("embed", compiler)
                out = self.folder / f"embed-{compiler}.out"
                done = run(binary, checkpoint, out, self.prefix / "bin/genai", prompt, environment=self.environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([int(word) for word in done.stdout.split(",")], expected["greedy_next"])
                self.assertIn("calibrated on 120 tokens", done.stderr)  # 3 samples of 40
                failed = run(binary, checkpoint, out, "/nonexistent", prompt, environment=self.environment)
                self.assertEqual(failed.returncode, 1)
                self.assertIn('embed: [inference] cannot run the artifact (caused by IoError: "/nonexistent generate', failed.stderr)


if __name__ == "__main__":
    if not BUILD or not (BUILD / "genai").exists():
        print("skipped: the program is not built")
        sys.exit(77)
    missing = [tool for tool in ["pkg-config", "gcc", "g++", "nm", "readelf"] if not shutil.which(tool)]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
