"""Runs .pte files with stock ExecuTorch (PyPI executorch, its QNN backend on the x86-64 simulator), an implementation independent of genai.

The loader reads LD_LIBRARY_PATH once, when a process starts, and the vendor's libraries write to standard output, so every run is a process
of its own that exchanges numpy files.
"""

import json
import os
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
    """Executes `calls`, a list of (method, list of arrays), in one process; returns a list of lists of arrays.

    Without inputs (None) a method's inputs are random, from a fixed seed; a constant method takes [] and returns its values.
    """
    with tempfile.TemporaryDirectory() as folder:
        request = []
        for index, (method, inputs) in enumerate(calls):
            names = None
            if inputs is not None:
                names = [os.path.join(folder, f"in_{index}_{i}.npy") for i in range(len(inputs))]
                for name, value in zip(names, inputs):
                    numpy.save(name, value)
            request.append({"method": method, "inputs": names, "output": os.path.join(folder, f"out_{index}")})
        environment = dict(os.environ, LD_LIBRARY_PATH=library_path() or "")
        done = subprocess.run(
            [sys.executable, os.path.abspath(__file__), path], input=json.dumps(request), text=True, capture_output=True, env=environment
        )
        if done.returncode:
            raise RuntimeError(f"stock ExecuTorch failed on {path}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        results = []
        for call in request:
            with open(call["output"] + ".json") as file:
                outputs = json.load(file)
            results.append([numpy.load(value["file"]) if isinstance(value, dict) else value for value in outputs])
        return results


def _random_inputs(metadata, generator):
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


def _serve(path):
    import torch
    from executorch.runtime import Runtime, Verification

    request = json.load(sys.stdin)
    program = Runtime.get().load_program(path, verification=Verification.InternalConsistency)
    methods = {}
    for call in request:
        name = call["method"]
        if name not in methods:
            methods[name] = program.load_method(name)
        method = methods[name]
        if call["inputs"] is None:
            inputs = _random_inputs(method.metadata, numpy.random.default_rng(1))
        else:
            inputs = [numpy.load(file) for file in call["inputs"]]
        described = []
        for index, value in enumerate(method.execute([torch.from_numpy(value) for value in inputs])):
            if isinstance(value, torch.Tensor):
                file = f"{call['output']}_{index}.npy"
                numpy.save(file, value.numpy())
                value = {"file": file}
            described.append(value)
        with open(call["output"] + ".json", "w") as file:
            json.dump(described, file)
    sys.stdout.flush()
    os._exit(0)  # the vendor's libraries do not promise to be torn down


if __name__ == "__main__":
    _serve(sys.argv[1])
