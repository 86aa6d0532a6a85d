#!/usr/bin/env python3
"""Records what ExecuTorch itself reads in a .pte whose methods are QNN delegates, for tests/executorch/test_pte.c.

Needs the PyPI package executorch 1.5.1; nothing of genai takes part.
  make_pte_reference.py stories260k_hybrid_llama_qnn.pte > tests/data/pte/stories260k.json
"""
import enum
import hashlib
import json
import struct
import sys

from executorch.backends.qualcomm.serialization.qc_schema_serialize import flatbuffer_to_option
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.schema import DelegateCall, Tensor


def plain(value):
    if isinstance(value, enum.Enum):
        return value.value
    return value


def tensor(value):
    return {"scalar_type": plain(value.scalar_type), "sizes": list(value.sizes)}


def scalar(value):
    (field,) = vars(value).values()
    return {"kind": type(value).__name__, "value": field}


def options(blob):
    parsed = flatbuffer_to_option(blob)
    htp = parsed.backend_options.htp_options
    return {
        "soc_model": plain(parsed.soc_info.soc_model),
        "htp_arch": plain(parsed.soc_info.htp_info.htp_arch),
        "vtcm_mb": parsed.soc_info.htp_info.vtcm_size_in_mb,
        "fp16": plain(htp.precision) == 1,
        "weight_sharing": htp.use_weight_sharing,
        "shared_buffer": parsed.shared_buffer,
        "performance_mode": plain(htp.performance_mode),
    }


def payload(blob):
    magic, signature, size = struct.unpack_from("<IqQ", blob)
    assert magic == 0x5678ABCD
    binary = blob[256 : 256 + size]
    return {"signature": signature, "binary_size": size, "binary_sha256": hashlib.sha256(binary).hexdigest()}


def method(program, plan):
    out = {"name": plan.name, "values": [scalar(plan.values[i].val) for i in plan.outputs if not isinstance(plan.values[i].val, Tensor)]}
    if plan.delegates:
        (delegate,) = plan.delegates
        (instruction,) = plan.chains[0].instructions
        assert isinstance(instruction.instr_args, DelegateCall)
        args = instruction.instr_args.args
        n_inputs = len(plan.inputs)
        out.update(
            inputs=[tensor(plan.values[i].val) for i in plan.inputs],
            outputs=[tensor(plan.values[i].val) for i in plan.outputs],
            delegate_inputs=[plan.inputs.index(i) for i in args[:n_inputs]],
            delegate_outputs=[plan.outputs.index(i) for i in args[n_inputs:]],
            delegate_id=delegate.id,
            options=options(delegate.compile_specs[0].value),
            payload=payload(program.backend_delegate_data[delegate.processed.index].data),
        )
    return out


def main():
    with open(sys.argv[1], "rb") as file:
        program = deserialize_pte_binary(file.read()).program
    lines = [json.dumps(method(program, plan)) for plan in program.execution_plan]
    print('{"methods": [\n' + ",\n".join(lines) + "\n]}")


if __name__ == "__main__":
    main()
