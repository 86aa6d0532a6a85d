#!/usr/bin/env python3
"""Stands in for the CUDA libraries that PyPI's torch for Linux links against, so that it imports on a machine without a GPU.

torch's own packages for these libraries take 3 GB; without a GPU none of their functions does anything but report that there is no device.
This makes one small library in which every function that torch needs from them returns 100 (cudaErrorNoDevice), and links each of the
missing names to it. For the test environment of this project only.

  cuda_stubs.py SITE_PACKAGES
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# What the symbols and libraries of the C and C++ run-time environment, of Python and of zlib start with: those are really there.
PRESENT_LIBRARIES = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libstdc++.so", "libgcc_s.so", "ld-linux", "libz.so", "libquadmath.so")
PRESENT_VERSIONS = ("GLIBC", "GCC", "CXXABI", "QUADMATH")
CUDA_SYMBOL = re.compile(r"(__)?(cu[A-Z]|cuda[A-Z]|cublas|cudnn|cufft|cuFile|curand|cusolver|cusparse|nccl|nvrtc|nvshmem|nvtx|nvml)")

# Every function is this one: x86-64, result register set to 100.
ASSEMBLY = ".text\n{labels}\n  mov $100, %eax\n  ret\n.section .note.GNU-stack,\"\",@progbits\n"


def output_of(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def missing_libraries(libraries):
    present = {library.name for library in libraries}
    needed = set()
    for library in libraries:
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*?)\]", output_of("readelf", "--dynamic", library)))
    return sorted(name for name in needed - present if not name.startswith(PRESENT_LIBRARIES))


def missing_functions(libraries):
    """Version (\"\" for none) to names."""
    result = collections.defaultdict(set)
    for library in libraries:
        for line in output_of("nm", "--dynamic", "--undefined-only", "--with-symbol-versions", library).splitlines():
            name, _, version = line.split()[-1].partition("@")
            if version.startswith(PRESENT_VERSIONS) or (not version and not CUDA_SYMBOL.match(name)):
                continue
            result[version.lstrip("@")].add(name)
    return result


def build(functions, path):
    names = sorted(set().union(*functions.values()))
    labels = "\n".join(f".globl {name}\n.type {name}, @function\n{name}:" for name in names)
    script = "".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in sorted(functions.items()) if version)
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder) / "stub.s", pathlib.Path(folder) / "versions"
        source.write_text(ASSEMBLY.format(labels=labels))
        versions.write_text(script)
        subprocess.run(
            ["gcc", "-shared", "-nostdlib", f"-Wl,--version-script={versions}", "-Wl,-soname,libgenai_no_cuda.so", "-o", path, source], check=True
        )


def main():
    folder = pathlib.Path(sys.argv[1]) / "torch/lib"
    libraries = sorted(folder.glob("*.so*"))
    missing = missing_libraries(libraries)
    stub = folder / "libgenai_no_cuda.so"
    build(missing_functions(libraries), stub)
    for name in missing:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(stub.name)
    print(f"{len(missing)} CUDA libraries replaced by {stub.name}")


if __name__ == "__main__":
    main()
