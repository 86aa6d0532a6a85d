"""Runs .pte files with stock ExecuTorch (PyPI executorch, its QNN backend on the x86-64 simulator), an implementation independent of genai.

The loader reads LD_LIBRARY_PATH once, when a process starts, and the vendor's libraries write to standard output, so a file is executed in a
process of its own, which answers on a pipe of its own and exchanges arrays as numpy files. It lives on for the next calls on the same file.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy

SCALAR_TYPES = {0: "uint8", 1: "int8", 3: "int32", 5: "float16", 6: "float32", 27: "uint16"}


def library_path():
    """What LD_LIBRARY_PATH must hold for the QNN backend, or None when there are no QNN libraries."""
    folder = os.environ.get("GENAI_QNN_DIR", "")
    if not os.path.exists(os.path.join(folder, "libQnnHtp.so")):
        return None
    return ":".join([folder, os.path.join(os.path.dirname(folder), "onnxruntime_qnn.libs")])


def execute(path, calls):
    """Executes `calls`, a list of (method, list of arrays); returns a list of lists of arrays.

    Without inputs (None) a method's inputs are random, from a fixed seed; a constant method takes [] and returns its values.
    """
    server = _server_of(path)
    return [server.execute(method, inputs) for method, inputs in calls]


class _Server:
    """The process that has one file loaded."""

    def __init__(self, path):
        self.path = path
        self.folder = tempfile.mkdtemp()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        answers, to_us = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), path, str(to_us)],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[to_us],
            env=dict(os.environ, LD_LIBRARY_PATH=library_path() or ""),
        )
        os.close(to_us)
        self.answers = os.fdopen(answers)

    def execute(self, method, inputs):
        names = None
        if inputs is not None:
            names = [os.path.join(self.folder, f"in_{i}.npy") for i in range(len(inputs))]
            for name, value in zip(names, inputs):
                numpy.save(name, value)
        try:
            self.process.stdin.write(json.dumps({"method": method, "inputs": names, "output": os.path.join(self.folder, "out")}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the log says why
        answer = self.answers.readline()
        if not answer:
            self.log.seek(0)
            raise RuntimeError(f"stock ExecuTorch failed on {self.path}, method {method}:\n{self.log.read()[-6000:]}")
        return [numpy.load(value["file"]) if isinstance(value, dict) else value for value in json.loads(answer)]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.answers.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


_servers = {}  # by path, size and time of change; the newest last


def _server_of(path):
    facts = os.stat(path)
    key = (os.path.abspath(path), facts.st_size, facts.st_mtime_ns)
    server = _servers.pop(key, None)
    if server and server.process.poll() is not None:
        server.close()
        server = None
    while not server and len(_servers) >= 2:
        _servers.pop(next(iter(_servers))).close()
    _servers[key] = server or _Server(str(path))
    return _servers[key]


@atexit.register
def _close_all():
    while _servers:
        _servers.popitem()[1].close()


# ---- In the other process ----


def _random_inputs(metadata):
    generator = numpy.random.default_rng(1)
    inputs = []
    for index in range(metadata.num_inputs()):
        tensor = metadata.input_tensor_meta(index)
        dtype = SCALAR_TYPES[int(tensor.dtype())]
        if dtype == "int32":  # token ids and positions
            inputs.append(generator.integers(0, 32, tensor.sizes(), dtype=dtype))
        elif dtype.startswith("float"):
            inputs.append(generator.standard_normal(tensor.sizes()).astype(dtype))
        else:
            inputs.append(generator.integers(0, numpy.iinfo(dtype).max, tensor.sizes(), dtype=dtype, endpoint=True))
    return inputs


def _serve(path, answers):
    import torch
    from executorch.runtime import Runtime, Verification

    program = Runtime.get().load_program(path, verification=Verification.InternalConsistency)
    methods = {}
    for line in sys.stdin:
        call = json.loads(line)
        name = call["method"]
        if name not in methods:
            methods[name] = program.load_method(name)
        inputs = _random_inputs(methods[name].metadata) if call["inputs"] is None else [numpy.load(file) for file in call["inputs"]]
        described = []
        for index, value in enumerate(methods[name].execute([torch.from_numpy(value) for value in inputs])):
            if isinstance(value, torch.Tensor):
                file = f"{call['output']}_{index}.npy"
                numpy.save(file, value.numpy())
                value = {"file": file}
            described.append(value)
        answers.write(json.dumps(described) + "\n")
        answers.flush()
    os._exit(0)  # the vendor's libraries do not promise to be torn down


if __name__ == "__main__":
    _serve(sys.argv[1], os.fdopen(int(sys.argv[2]), "w"))
