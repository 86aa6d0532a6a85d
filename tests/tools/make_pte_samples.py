#!/usr/bin/env python3
"""Writes small .pte files with ExecuTorch's own serializer, for tests/executorch/test_pte.c: layouts that pte_write does not produce, and
defects that leave the flatbuffer well formed.

Needs the PyPI package executorch 1.5.1; nothing of genai takes part. The context binaries are made-up bytes.
  make_pte_samples.py tests/data/pte
"""
import copy
import pathlib
import struct
import sys

import flatbuffers
from executorch.backends.qualcomm.serialization.qc_schema import (
    HtpArch,
    HtpInfo,
    QcomChipset,
    QnnExecuTorchBackendOptions,
    QnnExecuTorchBackendType,
    QnnExecuTorchHtpBackendOptions,
    QnnExecuTorchOpPackageOptions,
    QnnExecuTorchOptions,
    SocInfo,
)
from executorch.backends.qualcomm.serialization.qc_schema_serialize import option_to_flatbuffer
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir._serialize.generated.executorch_flatbuffer import ExecutionPlan as RawPlan
from executorch.exir._serialize.generated.executorch_flatbuffer import Program as RawProgram
from executorch.exir.schema import (
    BackendDelegate,
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    Bool,
    Buffer,
    Chain,
    CompileSpec,
    ContainerMetadata,
    DataLocation,
    DelegateCall,
    Double,
    EValue,
    ExecutionPlan,
    Instruction,
    Int,
    KernelCall,
    MoveCall,
    Null,
    Operator,
    Program,
    ScalarType,
    String,
    SubsegmentOffsets,
    Tensor,
    TensorShapeDynamism,
)


def tensor(scalar_type, *sizes):
    return EValue(
        Tensor(
            scalar_type=scalar_type,
            storage_offset=0,
            sizes=list(sizes),
            dim_order=list(range(len(sizes))),
            requires_grad=False,
            layout=0,
            data_buffer_idx=0,
            allocation_info=None,
            shape_dynamism=TensorShapeDynamism.STATIC,
        )
    )


def options(online_prepare=False, backend=QnnExecuTorchBackendType.kHtpBackend):
    return option_to_flatbuffer(
        QnnExecuTorchOptions(
            soc_info=SocInfo(soc_model=QcomChipset.SM8750, htp_info=HtpInfo(htp_arch=HtpArch.V79, vtcm_size_in_mb=8)),
            backend_options=QnnExecuTorchBackendOptions(
                backend_type=backend, htp_options=QnnExecuTorchHtpBackendOptions(use_weight_sharing=True)
            ),
            online_prepare=online_prepare,
            op_package_options=QnnExecuTorchOpPackageOptions(),
        )
    )


def payload(signature, binary):
    return struct.pack("<IqQ", 0x5678ABCD, signature, len(binary)).ljust(256, b"\0") + binary


def plan(name, values, inputs, outputs, instructions=(), delegates=(), operators=()):
    return ExecutionPlan(
        name=name,
        container_meta_type=ContainerMetadata("", ""),
        values=values,
        inputs=inputs,
        outputs=outputs,
        chains=[Chain(inputs=[], outputs=[], instructions=[Instruction(call) for call in instructions], stacktrace=None)],
        operators=list(operators),
        delegates=list(delegates),
        non_const_buffer_sizes=[0],
    )


def qnn_delegate(index, option_block=None, key="qnn_compile_spec", delegate_id="QnnBackend"):
    return BackendDelegate(
        id=delegate_id,
        processed=BackendDelegateDataReference(DataLocation.INLINE, index),
        compile_specs=[CompileSpec("unrelated", b"\x01\x02"), CompileSpec(key, option_block or options())],
    )


def qnn_plan(name, index, args=(1, 0, 2, 3), **delegate):
    values = [
        tensor(ScalarType.INT, 1, 4),
        tensor(ScalarType.UINT16, 1, 1, 4, 16),
        tensor(ScalarType.BYTE, 1, 2, 4),
        tensor(ScalarType.UINT16, 1, 4, 32),
    ]
    return plan(name, values, [0, 1], [3, 2], [DelegateCall(0, list(args))], [qnn_delegate(index, **delegate)])


def program(plans, blobs):
    return Program(
        version=0,
        execution_plan=plans,
        constant_buffer=[Buffer(b"")],
        backend_delegate_data=[BackendDelegateInlineData(blob) for blob in blobs],
        segments=[],
        constant_segment=SubsegmentOffsets(0, []),
        mutable_data_segments=None,
        named_data=None,
    )


def two_binaries():
    """Two methods with a binary each, a kernel method and a delegate of another backend, which are listed only, and constants."""
    kernel = plan(
        "kernels",
        [tensor(ScalarType.LONG, 2), tensor(ScalarType.LONG, 2), EValue(Null())],
        [0],
        [1],
        [KernelCall(0, [0, 1]), MoveCall(0, 1)],
        operators=[Operator("aten::neg", "out")],
    )
    other = qnn_plan("other_backend", 0, delegate_id="XnnpackBackend")
    constants = plan("get_mixed", [EValue(Bool(True)), EValue(Double(0.5)), EValue(String("x")), EValue(Int(-7))], [], [3, 2, 1, 0])
    plans = [qnn_plan("prefill_forward", 0), qnn_plan("kv_forward", 1, args=(0, 1, 3, 2)), kernel, other, constants]
    return program(plans, [payload(11, b"first binary"), payload(22, b"second, longer binary")])


def with_tensor(**fields):
    base = program([qnn_plan("kv_forward", 0)], [payload(1, b"binary")])
    for name, value in fields.items():
        setattr(base.execution_plan[0].values[2].val, name, value)
    return base


def defects():
    """Each is well formed and breaks one rule; the key names the file."""
    blob = payload(1, b"binary")

    def one(blob=blob, **kwargs):
        return program([qnn_plan("kv_forward", kwargs.pop("index", 0), **kwargs)], [blob])

    def changed(change):
        result = copy.deepcopy(one())
        change(result.execution_plan[0])
        return result

    yield "bad_argument_range", one(args=(1, 0, 2, 4))
    yield "bad_argument_negative", one(args=(1, 0, 2, -1))
    yield "bad_argument_twice", one(args=(1, 1, 2, 3))
    yield "bad_argument_count", one(args=(1, 0, 2))
    yield "bad_delegate_index", changed(lambda p: setattr(p.chains[0].instructions[0].instr_args, "delegate_index", 1))
    yield "bad_input_index", changed(lambda p: p.inputs.append(9))
    yield "bad_output_index", changed(lambda p: p.outputs.append(-3))
    yield "bad_no_options", one(key="another_spec")
    yield "bad_options", one(option_block=b"\xff" * 32)
    yield "bad_payload_short", one(blob=blob[:100])
    yield "bad_payload_magic", one(blob=b"DLC!" + blob[4:])
    yield "bad_payload_size", one(blob=blob + b"more")
    yield "unsupported_online_prepare", one(option_block=options(online_prepare=True))
    yield "unsupported_gpu", one(option_block=options(backend=QnnExecuTorchBackendType.kGpuBackend))
    yield "unsupported_type", with_tensor(scalar_type=ScalarType.LONG)
    yield "unsupported_rank", with_tensor(sizes=[1] * 6, dim_order=list(range(6)))
    yield "unsupported_dim_order", with_tensor(dim_order=[0, 2, 1])
    yield "unsupported_dynamic", with_tensor(shape_dynamism=TensorShapeDynamism.DYNAMIC_BOUND)
    yield "unsupported_offset", with_tensor(storage_offset=4)
    yield "bad_size", with_tensor(sizes=[1, -2, 4])
    yield "bad_size_overflow", with_tensor(sizes=[2**31 - 1] * 3)
    version = one()
    version.version = 1
    yield "unsupported_version", version


def shared_lists():
    """200 methods that are one and the same table with 1000 inputs: some 5 KB that would unfold to 200,000 inputs."""
    builder = flatbuffers.Builder(8192)
    RawPlan.StartInputsVector(builder, 1000)
    for _ in range(1000):
        builder.PrependInt32(0)
    inputs = builder.EndVector()
    name = builder.CreateString("shared")
    RawPlan.Start(builder)
    RawPlan.AddName(builder, name)
    RawPlan.AddInputs(builder, inputs)
    shared = RawPlan.End(builder)
    RawProgram.StartExecutionPlanVector(builder, 200)
    for _ in range(200):
        builder.PrependUOffsetTRelative(shared)
    plans = builder.EndVector()
    RawProgram.Start(builder)
    RawProgram.AddExecutionPlan(builder, plans)
    builder.Finish(RawProgram.End(builder), b"ET12")
    return bytes(builder.Output())


def main():
    folder = pathlib.Path(sys.argv[1])

    def write(name, content, segments):
        (folder / f"{name}.pte").write_bytes(bytes(serialize_pte_binary(PTEFile(content), extract_delegate_segments=segments)))

    write("segments", two_binaries(), True)
    write("inline", two_binaries(), False)
    for name, content in defects():
        write(name, content, True)
    (folder / "bad_shared_lists.pte").write_bytes(shared_lists())


if __name__ == "__main__":
    main()
